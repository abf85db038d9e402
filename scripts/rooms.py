"""The map of the packages in architecture.md, made from first lines of docstrings, and from imports.

A room is a folder with an `__init__.py`, or a module that stands alone in a package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from scripts.written_part import rewritten

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
PACKAGES: Final = ("service", "schemas", "engine")
START: Final = "<!-- rooms: written by `make docs` from the docstrings and the imports of the packages -->"
END: Final = "<!-- end of the rooms -->"


def page() -> str:
    """Return architecture.md with its map written anew."""
    return rewritten(PAGE.read_text(encoding="utf-8"), START, END, _listed(), "the rooms")


def _summary(path: Path) -> str:
    """The first paragraph of a file's docstring, as one line."""
    said = _read(path).docstring
    if not said:
        raise ValueError(f"{path.relative_to(ROOT)} says nothing of itself")
    return " ".join(said.partition("\n\n")[0].split()).removesuffix(".")


class _Read(NamedTuple):
    """What is wanted of a file. Its tree is let go: where those of all files stay, most of the time goes to garbage."""

    docstring: str | None
    imports: tuple[ast.Import | ast.ImportFrom, ...]


@cache
def _read(path: Path) -> _Read:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return _Read(ast.get_docstring(tree), tuple(_imports(tree)))


def _imports(within: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Those of all statements: there are none in an expression, which most of a tree is."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(within, part, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                yield statement
            yield from _imports(statement)


# ---------------------------------------------------------------- architecture.md


def _listed() -> str:
    """For each package a drawing of its rooms and a table of what is in them, the highest first."""
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
    where = path.relative_to(ROOT).as_posix()
    return f"| [{package}/{room}](../{where}) | {_summary(path).replace('|', chr(92) + '|')} |"


def _drawing(order: list[str], below: dict[str, set[str]]) -> list[str]:
    """Mermaid: an arrow from each room to those that it imports, but for what these import themselves."""
    arrows = [(room, used) for room in order for used in sorted(_direct(room, below))]
    return ["```mermaid", "graph TD", *(f"  {room} --> {used}" for room, used in arrows), "```"]


def _direct(room: str, below: dict[str, set[str]]) -> set[str]:
    return below[room] - {far for near in below[room] for far in _reached(near, below)}


def _reached(room: str, below: dict[str, set[str]]) -> set[str]:
    return below[room] | {far for near in below[room] for far in _reached(near, below)}


def _height(room: str, below: dict[str, set[str]]) -> int:
    return 1 + max((_height(used, below) for used in below[room]), default=0)


def _below(package: str) -> dict[str, set[str]]:
    """For each room of a package, those that it imports."""
    rooms = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    rooms |= {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for path in (ROOT / package).rglob("*.py"):
        room = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if room in found:
            found[room] |= {used for used in _imported(path, package) if used in rooms} - {room}
    return found


def _imported(path: Path, package: str) -> Iterator[str]:
    pattern = re.compile(rf"{package}\.(\w+)")
    for node in _read(path).imports:
        if isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and (found := pattern.match(node.module)):
            yield found[1]
        elif isinstance(node, ast.Import):
            yield from (found[1] for alias in node.names if (found := pattern.match(alias.name)))
