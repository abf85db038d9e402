"""The programs on the page about bridges run, and print the output that it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunningServer
from tests.docs.marked import blocks

PAGE = "docs/guide/bridges.md"
PYTHON = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax", "scipy"])
def test_program_prints_the_shown_output(library: str, server: RunningServer, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    (tmp_path / "program.py").write_text("".join(blocks(PAGE, library)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    command = [sys.executable, "program.py", server.url]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "".join(blocks(PAGE, f"{library}_prints")), run.stderr
