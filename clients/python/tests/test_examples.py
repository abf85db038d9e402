"""The examples in the package work, are as short as stated, and leave nothing on the server."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import gradserve_client as gs
from gradserve_client.examples import digits
from tests.conftest import RunningServer


@pytest.mark.slow
def test_digits_example_reaches_its_accuracy(
    start_server: Callable[..., RunningServer], capsys: pytest.CaptureFixture[str]
) -> None:
    url = start_server("--state", "memory").url
    digits.main(url)
    match = re.fullmatch(r"test accuracy: (0\.\d+)\n", capsys.readouterr().out)
    assert match
    assert float(match[1]) >= 0.97
    with gs.Client(url) as client:
        assert not [*client.tensors(), *client.graphs()]


def test_digits_example_has_at_most_30_lines() -> None:
    text = Path(digits.__file__).read_text(encoding="utf-8")
    docstrings = [node.body[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Module | ast.FunctionDef)]
    documented = {
        number for docstring in docstrings for number in range(docstring.lineno, (docstring.end_lineno or 0) + 1)
    }
    lines = [line for number, line in enumerate(text.splitlines(), 1) if line and number not in documented]
    assert 20 < len(lines) <= 30
