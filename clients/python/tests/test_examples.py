"""The examples in the package do what they say, in as many lines as they say, and leave nothing with the server."""

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
def test_the_digits_are_recognised(
    start_server: Callable[..., RunningServer], capsys: pytest.CaptureFixture[str]
) -> None:
    url = start_server("--state", "memory").url
    digits.main(url)
    found = re.fullmatch(r"test accuracy: (0\.\d+)\n", capsys.readouterr().out)
    assert found
    assert float(found[1]) >= 0.97
    with gs.Client(url) as client:
        assert not [*client.tensors(), *client.graphs()]


def test_the_digits_take_thirty_lines() -> None:
    text = Path(digits.__file__).read_text(encoding="utf-8")
    docstrings = [node.body[0] for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Module | ast.FunctionDef)]
    told = {number for said in docstrings for number in range(said.lineno, (said.end_lineno or 0) + 1)}
    lines = [line for number, line in enumerate(text.splitlines(), 1) if line and number not in told]
    assert 20 < len(lines) <= 30
