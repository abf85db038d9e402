"""The programs and the command on the page about importing run, and do what it shows."""

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
def test_program_prints_the_shown_output(library: str, server: RunningServer, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    (tmp_path / "program.py").write_text("".join(blocks(PAGE, library)), encoding="utf-8")
    done = run(["program.py", server.url], tmp_path)
    assert done.stdout == "".join(blocks(PAGE, f"{library}_prints")), done.stderr


@pytest.mark.slow
def test_command_stores_the_model_of_the_program(server: RunningServer, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    setup, _, _ = blocks(PAGE, "onnx")[0].partition("x = rng.normal")
    (tmp_path / "made.py").write_text(f'{setup}onnx.save(net, "net.onnx")\n', encoding="utf-8")
    assert run(["made.py"], tmp_path).returncode == 0
    (command,) = blocks(PAGE, "onnx_command")
    words = shlex.split(command.replace("http://127.0.0.1:8000", server.url))[1:]
    done = run(words, tmp_path)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[2:6]) == ("model net", ["3 tensors", "  net.w1", "  net.b1", "  net.w2"]), done.stderr
