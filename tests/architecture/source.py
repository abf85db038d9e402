"""What the tests of this folder read: the project's own Python files, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "schemas", "service")
EVERYTHING = (*PACKAGES, "clients", "tests", "examples", "scripts", "benchmarks", "deploy")


def files(*folders: str) -> list[Path]:
    """The Python files of these folders, in a stable order; not what is built of a client beside it."""
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in found if "build" not in path.relative_to(ROOT).parts]


def name(path: Path) -> str:
    """The path as the tests show it."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    """Every module named by an import statement, wherever in the file it stands."""
    return _named(ast.walk(parsed(path)))


def imports_at_load(path: Path) -> set[str]:
    """Those that loading the file imports: not the ones inside functions."""
    return _named(parsed(path).body)


def _named(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return found
