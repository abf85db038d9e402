"""The page on recording is true: its programs run, and print what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunningServer
from tests.docs.marked import blocks

PAGE = "docs/guide/recording.md"
PYTHON = Path(__file__).parents[2]


PROGRAMS = [*zip(blocks(PAGE, "python"), blocks(PAGE, "output"), strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "shown"), PROGRAMS, ids=["fit", "loops"])
def test_the_program_prints_what_the_page_shows(code: str, shown: str, server: RunningServer, tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    (tmp_path / "fit.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "fit.py", server.url]
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == shown, run.stderr
