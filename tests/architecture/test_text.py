"""What the project says about itself: docstrings everywhere, nothing unfinished, nothing of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import EVERYTHING, PACKAGES, ROOT, files, name, parsed
from tests.sampling import together

SKIPPED = {".venv", "build", "dist", "__pycache__", ".git"}
BINARY = {".png", ".ico", ".woff2", ".npz"}
# Spelled in parts, so that this file does not contain what it looks for.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
ONE_MACHINE = re.compile(r"(?<![\w.])/(?:ho" + r"me|ro" + r"ot|wo" + r"rk|Us" + r"ers|tm" + r"p/[\w.]+)/")
#: what clients are made of, beside their tests
CLIENTS = [path for path in files("clients") if "tests" not in path.parts]
REGISTRY = re.compile(r"py" + r"pi\.org|python" + r"hosted")


def texts() -> list[Path]:
    """Every text file of the project: what is tracked, or will be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.split("\0") if line]
    else:  # an unpacked archive instead of a clone
        paths = [path for path in ROOT.rglob("*") if not SKIPPED & set(path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file() and path.suffix not in BINARY and "static" not in path.parts]


def found(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern occurs, as path:line."""
    return [
        f"{name(path)}:{number}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.slow
def test_nothing_is_left_for_later() -> None:
    assert not found(UNFINISHED)


def test_nothing_belongs_to_one_machine() -> None:
    assert not found(ONE_MACHINE)


def test_nothing_names_a_package_registry() -> None:
    assert not found(REGISTRY)


@together
@pytest.mark.parametrize("path", files(*EVERYTHING), ids=name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), f"{name(path)} has no docstring"


@together
@pytest.mark.parametrize("path", [*files(*PACKAGES, "examples", "scripts"), *CLIENTS], ids=name)
def test_everything_public_says_what_it_does(path: Path) -> None:
    assert not [
        f"{name(path)}:{node.lineno} {node.name}" for node in public(parsed(path)) if not ast.get_docstring(node)
    ]


def public(scope: ast.Module | ast.ClassDef) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Public classes, functions and methods; not what is inside functions, nor a signature more of a function."""
    here = [
        node
        for node in scope.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)
    ]
    return here + [inner for node in here if isinstance(node, ast.ClassDef) for inner in public(node)]
