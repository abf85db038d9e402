"""Move and merge modules, and rewrite every reference to them: `python -m scripts.move PLAN...`

A line of a plan names an old and a new path, relative to the root of the repository:

    engine/graph/node.py engine/ir/node.py           a module; several with one target are merged, deepest import first
    engine/ir/ engine/ir/                         a folder: whatever in it no other line moves
    engine/passes/__init__.py -                      a file that goes
    engine/graph/node.py:_size _node_size            a name of a module, renamed in it and wherever it is imported

The first module listed for a target gives the docstring; docstrings of the others become comments. `--check` changes
nothing: it reports names that collide, import cycles, and imports that point up (`--order`, a file with one room a
line, lowest first).
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import symtable
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("engine", "service", "schemas", "tests", "benchmarks", "scripts", "clients", "examples")
#: files whose text says what was, and stays
HISTORY: Final = ("CHANGELOG.md",)
Edit = tuple[int, int, str]
_ROOT: Final = re.compile(r"__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]")
_DOTTED: Final = re.compile(r"(?<![\w./-])(?:engine|service|schemas|tests|clients)(?:\.\w+)+")
_PATH: Final = re.compile(r"(?<![\w-])(?:engine|service|schemas|tests|clients)/[\w./-]*[\w/]")


def module_of(path: str) -> str:
    """Dotted name of a Python file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass
class Plan:
    """Old path to new path of every file that moves, and old name to new name by module."""

    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    renames: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    gone: set[str] = field(default_factory=set)

    @property
    def modules(self) -> dict[str, str]:
        """Old module to new module."""
        return {module_of(a): module_of(b) for a, b in self.files.items() if a.endswith((".py", ".pyi"))}

    @property
    def targets(self) -> dict[str, list[str]]:
        """New path to the old paths that it is made of, in the order of the plan."""
        made = defaultdict(list)
        for old, new in self.files.items():
            made[new].append(old)
        return dict(made)


def tracked() -> list[str]:
    """All files of the repository."""
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if (ROOT / path).is_file()]


def read_plan(paths: Sequence[Path], everything: Sequence[str]) -> Plan:
    """Read the lines of all plans. Raises SystemExit for a path that does not exist."""
    plan, known = Plan(), set(everything)
    for number, line in ((n, text) for path in paths for n, text in enumerate(path.read_text().splitlines(), 1)):
        if not (words := line.partition("#")[0].split()):
            continue
        old, new = words
        if ":" in old:
            file, _, name = old.partition(":")
            plan.renames[module_of(file)][name] = new
        elif old.endswith("/"):
            plan.folders[old] = new
        elif new == "-":
            plan.gone.add(old)
        elif old in known:
            plan.files.pop(old, None)
            plan.files[old] = new
        else:
            raise SystemExit(f"line {number}: no file {old}")
    for path in everything:
        inside = [folder for folder in plan.folders if path.startswith(folder)]
        if inside and path not in plan.files and path not in plan.gone:
            longest = max(inside, key=len)
            plan.files[path] = plan.folders[longest] + path.removeprefix(longest)
    # A target that exists and does not move is merged with what comes to it, as its first part.
    for new in set(plan.files.values()) & known - plan.files.keys():
        plan.files = {new: new, **plan.files}
    return plan


class Source:
    """A Python file: its text, its tree, and where its nodes stand in its bytes."""

    def __init__(self, path: str, data: bytes | None = None) -> None:
        self.path, self.module = path, module_of(path)
        self.data = (ROOT / path).read_bytes() if data is None else data
        self.tree = ast.parse(self.data)
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte of a node, and the one behind its last."""
        assert isinstance(node, ast.expr | ast.stmt | ast.alias | ast.arg)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def lines(self, node: ast.stmt) -> tuple[int, int]:
        """The whole lines of a statement, with its decorators and what stands behind it on its last line."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        assert node.end_lineno is not None
        return self._starts[first - 1], self._starts[node.end_lineno]

    def imported(self) -> Iterator[tuple[ast.ImportFrom, bool]]:
        """Its `from` imports of the project; whether each runs as the module is loaded."""

        def walk(node: ast.AST, now: bool) -> Iterator[tuple[ast.ImportFrom, bool]]:
            for child in ast.iter_child_nodes(node):
                loaded = now and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                    loaded = False
                if isinstance(child, ast.ImportFrom) and (child.module or "").partition(".")[0] in PACKAGES:
                    yield child, loaded
                yield from walk(child, loaded)

        yield from walk(self.tree, now=True)


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Bytes with spans replaced, none of which overlap."""
    for start, end, text in sorted(set(edits), reverse=True):
        data = data[:start] + text.encode() + data[end:]
    return data


def _edit(said: str, start: int, end: int, new: str) -> Edit:
    """An edit at byte positions, of a match at positions in characters."""
    first = len(said[:start].encode())
    return first, first + len(said[start:end].encode()), new


def shadowing(source: Source, name: str) -> list[str]:
    """Functions in which a name is local."""
    table = symtable.symtable(source.data.decode(), source.path, "exec")

    def inside(scope: symtable.SymbolTable) -> Iterator[str]:
        for child in scope.get_children():
            if name in child.get_identifiers():
                symbol = child.lookup(name)
                if (symbol.is_local() or symbol.is_parameter()) and child.get_type() != "class":
                    yield child.get_name()
            yield from inside(child)

    return list(inside(table))


def rename(source: Source, old: str, new: str) -> Iterator[Edit]:
    """Edits that rename a name of the module. Raises SystemExit where a function has a local of that name."""
    if hidden := shadowing(source, old):
        raise SystemExit(f"{source.path}: {old} is local in {hidden}")
    conditional = [child for node in source.tree.body if isinstance(node, ast.If) for child in node.body]
    defined = [node for node in (*source.tree.body, *conditional) if getattr(node, "name", None) == old]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == old:
            yield (*source.span(node), new)
        elif isinstance(node, ast.Global) and old in node.names:
            start, end = source.span(node)
            yield start, end, "global " + ", ".join(new if name == old else name for name in node.names)
        elif node in defined:
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            start = source.data.index(f" {old}".encode(), source.span(node)[0]) + 1
            yield start, start + len(old.encode()), new


def top_names(source: Source) -> dict[str, str]:  # noqa: C901 # a branch a statement
    """Names that a module binds: what each is, `def` or the import that binds it."""
    names: dict[str, str] = {}

    def bind(statements: Sequence[ast.stmt]) -> None:  # noqa: C901 # the same
        for statement in statements:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names[statement.name] = "def"
                case ast.Assign():
                    for target in statement.targets:
                        names.update((n.id, "def") for n in ast.walk(target) if isinstance(n, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names[name] = "def"
                case ast.ImportFrom():
                    for a in statement.names:
                        names[a.asname or a.name] = f"{statement.module}.{a.name}"
                case ast.Import():
                    for a in statement.names:
                        names[a.asname or a.name.partition(".")[0]] = a.name if a.asname else a.name.partition(".")[0]
                case ast.If() | ast.Try() | ast.With():
                    bind(statement.body)
                    bind(getattr(statement, "orelse", []))
                    for handler in getattr(statement, "handlers", []):
                        bind(handler.body)

    bind(source.tree.body)
    return names


def definitions(source: Source) -> dict[str, tuple[str, ast.stmt]]:
    """Functions and simple assignments of a module, each by its name with its text."""
    made = dict[str, tuple[str, ast.stmt]]()
    for statement in source.tree.body:
        match statement:
            case (
                ast.FunctionDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                start, end = source.lines(statement)
                made[name] = source.data[start:end].decode().rstrip(), statement
    return made


class Mover:
    """All edits that a plan asks for."""

    def __init__(self, plan: Plan, everything: Sequence[str]) -> None:
        self.plan, self.modules, self.everything = plan, plan.modules, everything
        self.sources = {path: Source(path) for path in everything if path.endswith(".py")}
        self.all_modules = {module_of(path) for path in self.sources}
        self.problems: list[str] = []

    def new(self, module: str) -> str:
        """Where a module is now."""
        return self.modules.get(module, module)

    def edits(self, source: Source) -> list[Edit]:
        """Those of one file, all but the joining."""
        made, here = list[Edit](), self.new(source.module)
        own = self.plan.renames.get(source.module, {})
        names = top_names(source)
        for old, new in own.items():
            if old in names:
                made += rename(source, old, new)
            else:
                self.problems.append(f"{source.path} has no {old}")
        for statement, _ in source.imported():
            made += self._import(source, statement, here, own)
        return made

    def _import(self, source: Source, statement: ast.ImportFrom, here: str, own: Mapping[str, str]) -> Iterator[Edit]:
        assert statement.module is not None
        changed, groups = False, defaultdict[str, list[str]](list)
        for alias in statement.names:
            local, whole = alias.asname or alias.name, f"{statement.module}.{alias.name}"
            if whole in self.all_modules:
                target = self.new(whole)
                changed |= target != whole
                if target == here and whole != source.module:
                    changed = True
                    yield from self._unqualified(source, local, whole)
                    continue
                yield from self._attributes(source, local, whole)
                parent, _, last = target.rpartition(".")
                local = own.get(local, local)
                groups[parent].append(last if last == local else f"{last} as {local}")
                continue
            target = self.new(statement.module)
            name = self.plan.renames.get(statement.module, {}).get(alias.name, alias.name)
            changed |= target != statement.module or name != alias.name or local in own
            if target == here and statement.module != source.module:
                changed = True
                if local != name and local not in own:
                    yield from rename(source, local, name)
                continue
            if alias.asname is None and name != alias.name and alias.name not in own:
                yield from rename(source, alias.name, name)
                local = name
            local = own.get(local, local)
            groups[target].append(name if name == local else f"{name} as {local}")
        if not changed:
            return
        indent = " " * statement.col_offset
        text = f"\n{indent}".join(f"from {m} import {', '.join(names)}" for m, names in groups.items())
        start, end = source.span(statement)
        if not text and statement not in source.tree.body:
            # Alone in its block, it leaves a statement that does nothing, for a person to take away.
            text = "pass"
        yield start, end, text

    def _attributes(self, source: Source, local: str, module: str) -> Iterator[Edit]:
        """Renamed names that are read as attributes of an imported module, or patched in it."""
        renamed = self.plan.renames.get(module, {})
        for node in ast.walk(source.tree) if renamed else ():
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == local and attribute in renamed:
                    _, end = source.span(node)
                    yield end - len(attribute.encode()), end, renamed[attribute]
                case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str(attribute)) as said, *_]) if (
                    name == local and attribute in renamed
                ):
                    yield (*source.span(said), f'"{renamed[attribute]}"')

    def _unqualified(self, source: Source, local: str, module: str) -> Iterator[Edit]:
        """Attributes of a module that is merged with this one: plain names."""
        renamed = self.plan.renames.get(module, {})
        for node in ast.walk(source.tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == local:
                    yield (*source.span(node), renamed.get(attribute, attribute))

    def merged(self, target: str, olds: Sequence[str]) -> bytes:
        """The text of a module that is made of several."""
        parts = [Source(old, self.moved(old)) for old in olds]
        self._collisions(target, parts)
        heads, bodies = list[str](), dict[str, str]()
        order, written = self._sorted(olds), set[str]()
        for part in sorted(parts, key=lambda part: order.index(part.path)):
            head, body = self._split(part, written)
            heads.append(head)
            if part is not parts[0] and (doc := ast.get_docstring(part.tree)):
                body = "\n".join(f"# {line}".rstrip() for line in doc.splitlines()) + "\n\n" + body.lstrip("\n")
            bodies[part.path] = body
        doc = ast.get_docstring(parts[0].tree, clean=False) or ""
        text = f'"""{doc}"""\n\nfrom __future__ import annotations\n\n' + "\n".join(heads) + "\n\n"
        return (text + "\n\n\n".join(bodies[path].strip("\n") for path in order) + "\n").encode()

    def _collisions(self, target: str, parts: Sequence[Source]) -> None:
        bound: dict[str, tuple[str, str]] = {}
        for part in parts:
            same = definitions(part)
            for name, kind in top_names(part).items():
                if name == "annotations":
                    continue
                what = same[name][0] if name in same else kind
                before = bound.setdefault(name, (what, part.path))
                if before[1] != part.path and (before[0] != what or what == "def"):
                    said = [text.splitlines()[0] for text in (before[0], what)]
                    self.problems.append(f"{target}: {name} is {said[0]} in {before[1]} and {said[1]} in {part.path}")

    def _split(self, part: Source, written: set[str]) -> tuple[str, str]:
        """The imports at the head of a module, and what follows, without definitions that are `written` already."""
        rest, heads = part.data, list[str]()
        body = part.tree.body
        cut = list[Edit]()
        if body and isinstance(body[0], ast.Expr) and ast.get_docstring(part.tree) is not None:
            cut.append((*part.lines(body[0]), ""))
            body = body[1:]
        for statement in body:
            checking = isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
            if not isinstance(statement, ast.Import | ast.ImportFrom) and not checking:
                break
            start, end = part.lines(statement)
            cut.append((start, end, ""))
            if not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
                heads.append(part.data[start:end].decode().rstrip("\n"))
        for text, statement in definitions(part).values():
            if text in written:
                cut.append((*part.lines(statement), ""))
        written.update(text for text, _ in definitions(part).values())
        return "\n".join(heads), apply(rest, cut).decode()

    def _sorted(self, olds: Sequence[str]) -> list[str]:
        """Sort modules so that each comes after the modules that it imports."""
        among, done = {module_of(old): old for old in olds}, list[str]()

        def visit(old: str, path: tuple[str, ...] = ()) -> None:
            if old in done:
                return
            if old in path:
                self.problems.append(f"{old} imports itself by way of {path}")
                return
            for statement, loaded in self.sources[old].imported():
                assert statement.module is not None
                for module in (statement.module, *(f"{statement.module}.{a.name}" for a in statement.names)):
                    if loaded and module in among and among[module] != old:
                        visit(among[module], (*path, old))
            done.append(old)

        for old in olds:
            visit(old)
        return done

    def graph(self) -> dict[str, set[str]]:
        """What each module loads, by the names that they will have."""
        made = defaultdict[str, set[str]](set)
        for source in self.sources.values():
            here = self.new(source.module)
            for statement, loaded in source.imported():
                assert statement.module is not None
                for alias in statement.names if loaded else ():
                    whole = f"{statement.module}.{alias.name}"
                    there = self.new(whole if whole in self.all_modules else statement.module)
                    if there != here:
                        made[here].add(there)
        return made

    def references(self, path: str) -> Iterator[Edit]:
        """Edits of other references: dotted names, paths, links."""
        try:
            said = (ROOT / path).read_bytes().decode()
        except UnicodeDecodeError:
            return
        if path in HISTORY:
            return
        if path.endswith(".pyi"):
            package = module_of(path.removesuffix("i")).removesuffix(".__init__")
            for match in re.finditer(r"(?<=^from \.)[\w.]+(?= import)", said, re.MULTILINE):
                yield _edit(said, *match.span(), self.new(f"{package}.{match[0]}")[len(package) + 1 :])
            return
        root, deeper = path.count("/"), self.plan.files.get(path, path).count("/")
        for match in _ROOT.finditer(said) if root != deeper else ():
            if int(match[1]) == root:
                yield _edit(said, *match.span(1), str(deeper))
        spans = [match.span(1) for match in re.finditer(r"\]\(([^)]*)\)", said)] if path.startswith("docs/adr/") else []
        for pattern, replace in ((_DOTTED, self._dotted), (_PATH, self._path)):
            for match in pattern.finditer(said):
                linked = not path.startswith("docs/adr/") or any(a <= match.start() < b for a, b in spans)
                if linked and (new := replace(match[0])) != match[0]:
                    yield _edit(said, *match.span(), new)

    def _dotted(self, name: str) -> str:
        words = name.split(".")
        for length in range(len(words), 1, -1):
            old, rest = ".".join(words[:length]), words[length:]
            if old in self.modules and old in self.all_modules:
                renamed = self.plan.renames.get(old, {})
                return ".".join([self.modules[old], *(renamed.get(word, word) for word in rest[:1]), *rest[1:]])
            if (folder := old.replace(".", "/") + "/") in self.plan.folders:
                return ".".join([self.plan.folders[folder].rstrip("/").replace("/", "."), *rest])
        return name

    def _path(self, path: str) -> str:
        if path in self.plan.files:
            return self.plan.files[path]
        folder = path.rstrip("/") + "/"
        inside = [old for old in self.plan.folders if folder.startswith(old)]
        if not inside:
            return path
        longest = max(inside, key=len)
        new = self.plan.folders[longest] + folder.removeprefix(longest)
        return new if path.endswith("/") else new.rstrip("/")

    def moved(self, path: str) -> bytes:
        """A file with every reference in it as it will be."""
        data, made = (ROOT / path).read_bytes(), list[Edit]()
        others = list(self.references(path))
        if source := self.sources.get(path):
            made = self.edits(source)
            taken = [*((a, b) for a, b, _ in made), *(source.span(statement) for statement, _ in source.imported())]
            others = [edit for edit in others if not any(a < edit[1] and edit[0] < b for a, b in taken)]
        return apply(data, [*made, *others])

    def run(self) -> dict[str, bytes]:
        """New path to new bytes, of every file that changes."""
        written: dict[str, bytes] = {}
        for new, olds in self.plan.targets.items():
            if len(olds) > 1 and all(old.endswith(".py") for old in olds):
                written[new] = self.merged(new, olds)
            elif len(olds) > 1:
                self.problems.append(f"{new} is made of {olds}")
        for path in self.everything:
            new = self.plan.files.get(path, path)
            if new in written or path in self.plan.gone:
                continue
            if (data := self.moved(path)) != (ROOT / path).read_bytes() or new != path:
                written[new] = data
        return written


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that load one another (Tarjan)."""
    index, low, stack, found = dict[str, int](), dict[str, int](), list[str](), list[list[str]]()

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(stack[at:])
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for node in list(graph):
        if node not in index:
            visit(node)
    return found


def upward(graph: Mapping[str, set[str]], order: Sequence[str]) -> Iterator[str]:
    """Imports that point to a higher room."""

    def room(module: str) -> int | None:
        at = [i for i, name in enumerate(order) if module == name or module.startswith(f"{name}.")]
        return at[-1] if at else None

    for module, others in sorted(graph.items()):
        for other in sorted(others):
            if (a := room(module)) is not None and (b := room(other)) is not None and b > a:
                yield f"{module} imports {other}"


def write(plan: Plan, written: Mapping[str, bytes]) -> None:
    """Move files in the index, so that their history follows, and write what changed."""
    for old in plan.gone:
        command = ["git", "rm", "-q", old]
        subprocess.run(command, cwd=ROOT, check=True)
    for old, new in plan.files.items():
        if old != new:
            (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
            taken = (ROOT / new).exists()
            command = ["git", "rm", "-q", old] if taken else ["git", "mv", old, new]
            subprocess.run(command, cwd=ROOT, check=True)
    for path, data in written.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_bytes(data)
    for room in {Path(new).parent for new in plan.files.values() if new.endswith(".py")}:
        for folder in (room, *room.parents):
            if (
                folder.parts
                and folder.parts[0] in ("engine", "service", "schemas")
                and not (ROOT / folder / "__init__.py").exists()
            ):
                (ROOT / folder / "__init__.py").write_text(f'"""{folder.name}."""\n')
                print(f"{folder}/__init__.py needs a docstring")


def main() -> int:
    """Check a plan, or carry it out."""
    parser = argparse.ArgumentParser(description=textwrap.dedent(__doc__ or ""))
    parser.add_argument("plans", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--order", type=Path)
    asked = parser.parse_args()
    everything = tracked()
    plan = read_plan(asked.plans, everything)
    mover = Mover(plan, everything)
    written = mover.run()
    graph = mover.graph()
    inside = {m: others for m, others in graph.items() if m.startswith(("engine", "service", "schemas"))}
    mover.problems += [f"import one another: {' '.join(sorted(group))}" for group in cycles(inside)]
    if asked.order:
        mover.problems += upward(inside, asked.order.read_text().split())
    print(*mover.problems, sep="\n")
    kept = {
        plan.files.get(p, p)
        for p in everything
        if p not in plan.gone and p.endswith(".py") and p.startswith(("engine/", "service/", "schemas/"))
    }
    print(f"{len(kept)} modules of engine, service and schemas; {len(mover.problems)} problems")
    if mover.problems or asked.check:
        return bool(mover.problems)
    write(plan, written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
