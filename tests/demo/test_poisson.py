"""The second example: a differential equation, its second derivative built by nested `grad` nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_poisson_example_finds_the_solution() -> None:
    command = [sys.executable, EXAMPLES / "poisson.py"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    last = run.stdout.strip().splitlines()[-1]
    match = re.fullmatch(r"largest error: (\S+)", last)
    assert match, last
    assert float(match[1]) < 1e-2
