"""The page on importing is true: its program and its command run, and do what it shows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunningServer
from tests.docs.marked import blocks

PAGE = "docs/guide/importing.md"
PYTHON = Path(__file__).parents[2]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PYTHON), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("library", ["onnx", "torch", "jax"])
def test_the_program_of_a_library_prints_what_the_page_shows(
    library: str, server: RunningServer, tmp_path: Path
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    (tmp_path / "program.py").write_text("".join(blocks(PAGE, library)), encoding="utf-8")
    found = run(["program.py", server.url], tmp_path)
    assert found.stdout == "".join(blocks(PAGE, f"{library}_prints")), found.stderr


@pytest.mark.slow
def test_the_command_of_the_page_keeps_the_model_of_its_program(server: RunningServer, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    made, _, _ = blocks(PAGE, "onnx")[0].partition("x = rng.normal")
    (tmp_path / "made.py").write_text(f'{made}onnx.save(net, "net.onnx")\n', encoding="utf-8")
    assert run(["made.py"], tmp_path).returncode == 0
    (command,) = blocks(PAGE, "onnx_command")
    words = shlex.split(command.replace("http://127.0.0.1:8000", server.url))[1:]
    found = run(words, tmp_path)
    lines = found.stdout.splitlines()
    assert (lines[0], lines[2:6]) == ("model net", ["3 tensors", "  net.w1", "  net.b1", "  net.w2"]), found.stderr
