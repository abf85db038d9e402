"""The programs on the page about recording run, and print the output that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradserve_client.recording import missing, namespace
from tests.conftest import RunningServer
from tests.docs.marked import blocks

PAGE = "docs/guide/recording.md"
PYTHON = Path(__file__).parents[2]
ROOT = Path(__file__).parents[4]
#: a dtype that the page mentions without code
NOT_LISTED = {"float16"}


PROGRAMS = [*zip(blocks(PAGE, "python"), blocks(PAGE, "output"), strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "shown"), PROGRAMS, ids=["fit", "loops"])
def test_program_prints_the_shown_output(code: str, shown: str, server: RunningServer, tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    (tmp_path / "fit.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "fit.py", server.url]
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == shown, run.stderr


def test_page_lists_extensions_and_missing_functions() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Supported functions")[2]
    named = {*re.findall(r"`(?:xp\.)?(\w+)", text)}
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    standard = {*strict.__all__, *strict.linalg.__all__, *strict.fft.__all__, "take_along_axis"}
    ours = {*namespace.__all__, *namespace.linalg.__all__, *namespace.fft.__all__, *namespace.special.__all__}
    extensions = {name for name in ours if not name.startswith("__")} - standard
    assert extensions - NOT_LISTED <= named
    assert {*missing.LINALG} <= named
