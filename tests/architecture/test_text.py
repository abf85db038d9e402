"""Text rules: docstrings everywhere, no unfinished markers, no machine-specific paths."""

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
# Split the patterns, so that this file does not match them.
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
ONE_MACHINE = re.compile(r"(?<![\w.])/(?:ho" + r"me|ro" + r"ot|wo" + r"rk|Us" + r"ers|tm" + r"p/[\w.]+)/")
#: client sources without their tests
CLIENTS = [path for path in files("clients") if "tests" not in path.parts]
REGISTRY = re.compile(r"py" + r"pi\.org|python" + r"hosted")


def text_files() -> list[Path]:
    """Return every text file of the project that is tracked or not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.split("\0") if line]
    else:  # an unpacked archive instead of a clone
        paths = [path for path in ROOT.rglob("*") if not SKIPPED & set(path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file() and path.suffix not in BINARY and "static" not in path.parts]


def matching_lines(pattern: re.Pattern[str]) -> list[str]:
    """Return each match of the pattern as path:line."""
    return [
        f"{name(path)}:{number}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.slow
def test_no_unfinished_markers() -> None:
    assert not matching_lines(UNFINISHED)


def test_no_machine_specific_paths() -> None:
    assert not matching_lines(ONE_MACHINE)


def test_no_package_registry_urls() -> None:
    assert not matching_lines(REGISTRY)


@pytest.mark.slow
@together
@pytest.mark.parametrize("path", files(*EVERYTHING), ids=name)
def test_modules_have_docstrings(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), f"{name(path)} has no docstring"


@pytest.mark.slow
@together
@pytest.mark.parametrize("path", [*files(*PACKAGES, "examples", "scripts"), *CLIENTS], ids=name)
def test_public_definitions_have_docstrings(path: Path) -> None:
    assert not [
        f"{name(path)}:{node.lineno} {node.name}"
        for node in public_definitions(parsed(path))
        if not ast.get_docstring(node)
    ]


def public_definitions(scope: ast.Module | ast.ClassDef) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return public classes, functions and methods, without nested functions and overloads."""
    definitions = [
        node
        for node in scope.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)
    ]
    return definitions + [
        inner for node in definitions if isinstance(node, ast.ClassDef) for inner in public_definitions(node)
    ]
