"""Map of the packages in architecture.md, generated from their docstrings and imports.

A room is a folder with an `__init__.py`, or a module directly in a package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from scripts.generated_part import replace_part

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
PACKAGES: Final = ("service", "schemas", "engine")
START: Final = "<!-- rooms: written by `make docs` from the docstrings and the imports of the packages -->"
END: Final = "<!-- end of the rooms -->"


def page() -> str:
    """Return architecture.md with its map regenerated."""
    return replace_part(PAGE.read_text(encoding="utf-8"), START, END, _listed(), "the rooms")


def _summary(path: Path) -> str:
    """Return the first paragraph of a file's docstring, as one line."""
    docstring = _read(path).docstring
    if not docstring:
        raise ValueError(f"{path.relative_to(ROOT)} says nothing of itself")
    return " ".join(docstring.partition("\n\n")[0].split()).removesuffix(".")


class _Read(NamedTuple):
    """Docstring and imports of a file.

    The syntax tree is dropped: keeping those of all files makes garbage collection the dominant cost.
    """

    docstring: str | None
    imports: tuple[ast.Import | ast.ImportFrom, ...]


@cache
def _read(path: Path) -> _Read:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return _Read(ast.get_docstring(tree), tuple(_imports(tree)))


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of all statements. Expressions, most of a tree, are skipped, since they contain none."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(node, part, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                yield statement
            yield from _imports(statement)


# ---------------------------------------------------------------- architecture.md


def _listed() -> str:
    """Return a drawing of the rooms of each package, and a table of their contents, the highest room first."""
    return "\n".join(_package(package) for package in PACKAGES)


def _package(package: str) -> str:
    below = _below(package)
    order = sorted(below, key=lambda room: (-_height(room, below), room))
    lines = [f"### {package}", ""]
    if any(below.values()):
        lines += [*_drawing(order, below), ""]
    lines += ["| room | what is in it |", "| --- | --- |", *(_row(package, room) for room in order), ""]
    return "\n".join(lines)


def _row(package: str, room: str) -> str:
    path = ROOT / package / room / "__init__.py"
    path = path if path.exists() else ROOT / package / f"{room}.py"
    link = path.relative_to(ROOT).as_posix()
    return f"| [{package}/{room}](../{link}) | {_summary(path).replace('|', chr(92) + '|')} |"


def _drawing(order: list[str], below: dict[str, set[str]]) -> list[str]:
    """Return a Mermaid graph with an arrow from each room to the rooms that it imports, transitive ones omitted."""
    arrows = [(room, used) for room in order for used in sorted(_direct(room, below))]
    return ["```mermaid", "graph TD", *(f"  {room} --> {used}" for room, used in arrows), "```"]


def _direct(room: str, below: dict[str, set[str]]) -> set[str]:
    return below[room] - {indirect for direct in below[room] for indirect in _reached(direct, below)}


def _reached(room: str, below: dict[str, set[str]]) -> set[str]:
    return below[room] | {indirect for direct in below[room] for indirect in _reached(direct, below)}


def _height(room: str, below: dict[str, set[str]]) -> int:
    return 1 + max((_height(used, below) for used in below[room]), default=0)


def _below(package: str) -> dict[str, set[str]]:
    """Return the rooms that each room of a package imports."""
    rooms = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    rooms |= {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    imports_of: dict[str, set[str]] = {room: set() for room in rooms}
    for path in (ROOT / package).rglob("*.py"):
        room = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if room in imports_of:
            imports_of[room] |= {used for used in _imported(path, package) if used in rooms} - {room}
    return imports_of


def _imported(path: Path, package: str) -> Iterator[str]:
    pattern = re.compile(rf"{package}\.(\w+)")
    for node in _read(path).imports:
        if isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and (match := pattern.match(node.module)):
            yield match[1]
        elif isinstance(node, ast.Import):
            yield from (match[1] for alias in node.names if (match := pattern.match(alias.name)))
