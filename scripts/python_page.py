"""docs/reference/python.md: the public names of `gradserve_client`, by file, with signatures and docstrings.

The files are parsed, not imported, so that the page always describes the client of this checkout.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "clients" / "python" / "gradserve_client"
PAGE: Final = ROOT / "docs" / "reference" / "python.md"
#: files with public names, in the order of the page; `fields` has the types of signatures
TITLES: Final = {
    "client": "The client",
    "async_client": "With asyncio",
    "graph": "Graphs",
    "recording/function": "Recorded functions",
    "recording/async_function": "Recorded functions, awaited",
    "recording/loops": "Loops and branches",
    "recording/lines": "Lines",
    "answers": "Answers",
    "fields": "Fields of calls",
    "registered": "Registered graphs",
    "models": "Models",
    "resident": "Resident tensors",
    "errors": "Errors",
}
#: file with the op methods of nodes and graphs
OPS: Final = "generated/ops"
#: module prefixes of classes in annotations
_MODULE: Final = re.compile(r"\b(?:answers|fields|requests)\.(?=[A-Z])")
HEAD: Final = """<!-- Written by `make docs` from the docstrings of gradserve_client. Edit those, not this page. -->

# The Python client

All that `import gradserve_client as gs` gives. To begin with, there are
[ten minutes](../guide/ten-minutes-python.md), and [functions that are recorded](../guide/recording.md)."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page_of_python() -> str:
    """Return the page: a section for each file, then the ops. Raises KeyError for a file without a title."""
    public = public_names()
    documented: set[tuple[str, str]] = set()
    parts = [HEAD]
    for module in sorted(public | {"fields": []}, key=[*TITLES].index):
        tree = _tree(module)
        definitions = {each.name: each for each in tree.body if isinstance(each, Function | ast.ClassDef)}
        parts += [f"## {TITLES[module]}", _prose(tree)]
        for name in public.get(module, definitions):
            parts += _section(definitions[name], documented)
    return "\n\n".join([*parts, *_ops()]) + "\n"


def public_names() -> dict[str, list[str]]:
    """Return the files of the package with their public names, as imported by its `__init__`."""
    names: dict[str, list[str]] = {}
    for module, name in _imported("__init__"):
        names.setdefault(_home(module, name), []).append(name)
    return names


def _imported(file: str) -> Iterator[tuple[str, str]]:
    """Yield the modules and names that a file imports from the package."""
    for statement in _tree(file).body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(PACKAGE.name):
            yield from ((statement.module or "", alias.name) for alias in statement.names)


def _home(module: str, name: str) -> str:
    """Return the file that defines a name, relative to the package. Folders re-export names of their files."""
    path = module.partition(".")[2].replace(".", "/")
    if not (PACKAGE / path).is_dir():
        return path
    return next(_home(inner, name) for inner, exported in _imported(f"{path}/__init__") if exported == name)


def _tree(file: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{file}.py").read_text(encoding="utf-8"))


def _prose(node: ast.Module | ast.ClassDef | Function) -> str:
    """Return a docstring as Markdown. Diagrams become text blocks."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    return "\n\n".join(f"```text\n{part}\n```" if "├" in part else part for part in paragraphs)


def _section(node: ast.ClassDef | Function, documented: set[tuple[str, str]]) -> Iterator[str]:
    """Yield a class or function. Methods with the same name and docstring as a `documented` one are only named."""
    yield f"### {node.name}"
    yield _code(_signature(node)) if isinstance(node, Function) else _code(*_class_lines(node))
    yield _prose(node)
    repeated = []
    for member in node.body if isinstance(node, ast.ClassDef) else ():
        name = _member(member)
        if isinstance(member, Function) and name and (name, _prose(member)) not in documented:
            documented.add((name, _prose(member)))
            yield _code(_signature(member))
            yield _prose(member)
        elif name:
            repeated.append(f"`{name}`")
    if repeated:
        yield f"As above: {', '.join(repeated)}."


def _member(member: ast.stmt) -> str:
    """Return the name of a public method or callable attribute, else an empty string."""
    if isinstance(member, ast.Assign) and isinstance(member.value, ast.Call):
        name = ast.unparse(member.targets[0])
    else:
        name = member.name if isinstance(member, Function) else ""
    return "" if name.startswith("_") else name


def _class_lines(node: ast.ClassDef) -> Iterator[str]:
    """Yield the class, its constructor, and its fields."""
    bases = ", ".join(_plain(base) for base in node.bases)
    yield f"class {node.name}({bases})" if bases else f"class {node.name}"
    for member in node.body:
        if isinstance(member, Function) and member.name == "__init__":
            yield _signature(member).replace("def __init__", node.name).removesuffix(" -> None")
        elif isinstance(member, ast.AnnAssign) and "ClassVar" not in ast.unparse(member.annotation):
            yield f"{ast.unparse(member.target)}: {_plain(member.annotation)}"


def _signature(function: Function) -> str:
    """Return the signature on one line, without `self`; for a property, its type."""
    returns = f" -> {_plain(function.returns)}" if function.returns else ""
    if {ast.unparse(decorator) for decorator in function.decorator_list} & {"property", "cached_property"}:
        return f"{function.name}{returns.replace(' ->', ':')}"
    parameters = [part for part in _parameters(function.args) if part not in ("self", "cls")]
    kind = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{kind} {function.name}({', '.join(parameters)}){returns}"


def _parameters(stated: ast.arguments) -> Iterator[str]:
    positional = [*stated.posonlyargs, *stated.args]
    defaults = [None] * (len(positional) - len(stated.defaults)) + stated.defaults
    for position, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(argument, default)
        if position == len(stated.posonlyargs):
            yield "/"
    if stated.vararg:
        yield f"*{_parameter(stated.vararg, None)}"
    elif stated.kwonlyargs:
        yield "*"
    for argument, default in zip(stated.kwonlyargs, stated.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if stated.kwarg:
        yield f"**{_parameter(stated.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    typed = f"{argument.arg}: {_plain(argument.annotation)}" if argument.annotation else argument.arg
    return f"{typed} = {_plain(default)}" if default else typed


def _plain(node: ast.AST) -> str:
    return _MODULE.sub("", ast.unparse(node))


def _code(*lines: str) -> str:
    return "```python\n" + "\n".join(lines) + "\n```"


def _ops() -> Iterator[str]:
    """Yield the op methods, one per line, with links to the ops."""
    yield "## Ops"
    yield "Methods of nodes and graphs, each with what is said of the op that it appends. What is None is not stated."
    for kind in _tree(OPS).body:
        if isinstance(kind, ast.ClassDef):
            yield _prose(kind)
            yield "\n".join(_op(method) for method in kind.body if _member(method) not in ("", "op"))


def _op(method: ast.stmt) -> str:
    """Return the line of a method. Its op is the first string in its last statement."""
    assert isinstance(method, Function)
    strings = (each.value for each in ast.walk(method.body[-1]) if isinstance(each, ast.Constant))
    op = next(each for each in strings if isinstance(each, str))
    return f"- [{method.name}](../ops.md#{op}): `{_signature(method).removeprefix('def ')}`"
