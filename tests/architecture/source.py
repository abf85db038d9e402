"""The project's own Python files, parsed, for the tests of this folder."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "schemas", "service")
EVERYTHING = (*PACKAGES, "clients", "tests", "examples", "scripts", "benchmarks", "deploy")


def files(*folders: str) -> list[Path]:
    """Return the Python files of the folders in a stable order, without build outputs of the clients."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in paths if "build" not in path.relative_to(ROOT).parts]


def name(path: Path) -> str:
    """Return the path relative to the repository root."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    """Return every module that the file imports, including imports inside functions."""
    return _imported_modules(ast.walk(parsed(path)))


def imports_at_load(path: Path) -> set[str]:
    """Return the modules that the file imports at module level."""
    return _imported_modules(parsed(path).body)


def _imported_modules(nodes: Iterable[ast.AST]) -> set[str]:
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(node.module or "")
    return modules
