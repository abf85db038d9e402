"""Small functions, small files: a reader finds the file before looking, and reads it in five minutes."""

from __future__ import annotations

import statistics

import pytest

from tests.architecture.source import EVERYTHING, PACKAGES, files, functions, length, name

LONGEST_FILE = 600
LONG_FUNCTION = 30
MEDIAN_FUNCTION = 8
#: written by a program, and read a method at a time
WRITTEN = "clients/python/gradserve_client/ops.py"


def lengths(*folders: str) -> dict[str, int]:
    """Each function, by place, and its length."""
    return {f"{name(path)}:{f.lineno} {f.name}": length(f) for path in files(*folders) for f in functions(path)}


def test_no_file_is_long() -> None:
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files(*EVERYTHING)}
    assert {path for path, size in sizes.items() if size > LONGEST_FILE} == {WRITTEN}


@pytest.mark.slow
@pytest.mark.parametrize("folders", [PACKAGES, EVERYTHING], ids=["packages", "everything"])
def test_the_median_function_is_short(folders: tuple[str, ...]) -> None:
    assert statistics.median(lengths(*folders).values()) <= MEDIAN_FUNCTION


@pytest.mark.slow
@pytest.mark.parametrize("folders", [PACKAGES, EVERYTHING], ids=["packages", "everything"])
def test_nine_of_ten_functions_fit_on_a_screen(folders: tuple[str, ...]) -> None:
    measured = lengths(*folders)
    long = {place: size for place, size in measured.items() if size > LONG_FUNCTION}
    assert len(long) <= 0.1 * len(measured), f"too many long functions: {long}"


def test_the_measure_itself() -> None:
    """A function's docstring does not count; its decorators, being above `def`, do not either."""
    import ast

    from tests.architecture.source import Function

    source = 'def f(\n    x,\n):\n    """Two\n    lines."""\n    y = x\n    return y\n'
    (function,) = ast.parse(source).body
    assert isinstance(function, Function)
    assert length(function) == 5
