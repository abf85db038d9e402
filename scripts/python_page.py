"""docs/reference/python.md: what `gradserve_client` gives to programs, by its files, signatures and docstrings.

The files are read and not imported: it is always the client of this checkout.
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
#: the files that something public is in, in the order of the page; `fields` are what signatures refer to
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
#: the file with the ops that nodes and graphs have as methods
OPS: Final = "generated/ops"
#: where the annotations of one file say in which other a class is
_MODULE: Final = re.compile(r"\b(?:answers|fields|requests)\.(?=[A-Z])")
HEAD: Final = """<!-- Written by `make docs` from the docstrings of gradserve_client. Edit those, not this page. -->

# The Python client

All that `import gradserve_client as gs` gives. To begin with, there are
[ten minutes](../guide/ten-minutes-python.md), and [functions that are recorded](../guide/recording.md)."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page_of_python() -> str:
    """The page: a section for each file, then the ops. Raises KeyError for a file that has no title here."""
    public = public_names()
    told: set[tuple[str, str]] = set()
    parts = [HEAD]
    for module in sorted(public | {"fields": []}, key=[*TITLES].index):
        tree = _tree(module)
        found = {each.name: each for each in tree.body if isinstance(each, Function | ast.ClassDef)}
        parts += [f"## {TITLES[module]}", _prose(tree)]
        for name in public.get(module, found):
            parts += _section(found[name], told)
    return "\n\n".join([*parts, *_ops()]) + "\n"


def public_names() -> dict[str, list[str]]:
    """The files of the package with what is public in them, as its `__init__` imports that."""
    found: dict[str, list[str]] = {}
    for module, name in _imported("__init__"):
        found.setdefault(_home(module, name), []).append(name)
    return found


def _imported(file: str) -> Iterator[tuple[str, str]]:
    """What a file imports of the package: modules and names."""
    for statement in _tree(file).body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(PACKAGE.name):
            yield from ((statement.module or "", alias.name) for alias in statement.names)


def _home(module: str, name: str) -> str:
    """The file that a name is defined in, below the package; folders pass on what their files have."""
    place = module.partition(".")[2].replace(".", "/")
    if not (PACKAGE / place).is_dir():
        return place
    return next(_home(inner, name) for inner, passed_on in _imported(f"{place}/__init__") if passed_on == name)


def _tree(file: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{file}.py").read_text(encoding="utf-8"))


def _prose(node: ast.Module | ast.ClassDef | Function) -> str:
    """A docstring as Markdown; what is drawn in it stays as it is drawn."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    return "\n\n".join(f"```text\n{part}\n```" if "├" in part else part for part in paragraphs)


def _section(node: ast.ClassDef | Function, told: set[tuple[str, str]]) -> Iterator[str]:
    """A class or a function. Of a class, what is `told` already, by the same name in the same words, is named again."""
    yield f"### {node.name}"
    yield _code(_signature(node)) if isinstance(node, Function) else _code(*_made(node))
    yield _prose(node)
    again = []
    for member in node.body if isinstance(node, ast.ClassDef) else ():
        name = _member(member)
        if isinstance(member, Function) and name and (name, _prose(member)) not in told:
            told.add((name, _prose(member)))
            yield _code(_signature(member))
            yield _prose(member)
        elif name:
            again.append(f"`{name}`")
    if again:
        yield f"As above: {', '.join(again)}."


def _member(member: ast.stmt) -> str:
    """The name of a public method, or of what is called like one; else nothing."""
    if isinstance(member, ast.Assign) and isinstance(member.value, ast.Call):
        name = ast.unparse(member.targets[0])
    else:
        name = member.name if isinstance(member, Function) else ""
    return "" if name.startswith("_") else name


def _made(node: ast.ClassDef) -> Iterator[str]:
    """The class, what it is made with, and its fields."""
    bases = ", ".join(_plain(base) for base in node.bases)
    yield f"class {node.name}({bases})" if bases else f"class {node.name}"
    for member in node.body:
        if isinstance(member, Function) and member.name == "__init__":
            yield _signature(member).replace("def __init__", node.name).removesuffix(" -> None")
        elif isinstance(member, ast.AnnAssign) and "ClassVar" not in ast.unparse(member.annotation):
            yield f"{ast.unparse(member.target)}: {_plain(member.annotation)}"


def _signature(function: Function) -> str:
    """One line as Python has it, without `self`; of a property its type."""
    gives = f" -> {_plain(function.returns)}" if function.returns else ""
    if {ast.unparse(decorator) for decorator in function.decorator_list} & {"property", "cached_property"}:
        return f"{function.name}{gives.replace(' ->', ':')}"
    taken = [part for part in _parameters(function.args) if part not in ("self", "cls")]
    kind = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{kind} {function.name}({', '.join(taken)}){gives}"


def _parameters(stated: ast.arguments) -> Iterator[str]:
    positional = [*stated.posonlyargs, *stated.args]
    defaults = [None] * (len(positional) - len(stated.defaults)) + stated.defaults
    for place, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(argument, default)
        if place == len(stated.posonlyargs):
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
    """The ops that are methods: a line each, which leads to what it computes."""
    yield "## Ops"
    yield "Methods of nodes and graphs, each with what is said of the op that it appends. What is None is not stated."
    for kind in _tree(OPS).body:
        if isinstance(kind, ast.ClassDef):
            yield _prose(kind)
            yield "\n".join(_op(method) for method in kind.body if _member(method) not in ("", "op"))


def _op(method: ast.stmt) -> str:
    """A method with the op that it appends: the first string in its last statement."""
    assert isinstance(method, Function)
    strings = (each.value for each in ast.walk(method.body[-1]) if isinstance(each, ast.Constant))
    op = next(each for each in strings if isinstance(each, str))
    return f"- [{method.name}](../ops.md#{op}): `{_signature(method).removeprefix('def ')}`"
