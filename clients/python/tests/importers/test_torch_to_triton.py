"""The example from a PyTorch network to Triton's client: it is short, and the network learns."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunningServer

SCRIPT = Path(__file__).with_name("torch_to_triton.py")


@pytest.mark.slow
def test_example_trains_the_network(start_server: Callable[..., RunningServer]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("tritonclient.http", reason="Triton's client is not installed")
    server = start_server("--facades", "openinference", "--workers", "1", "--state", "memory")
    command = [sys.executable, str(SCRIPT), server.url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    first, last, product = map(float, re.findall(r"-?\d+\.\d+", done.stdout.replace("0.5 times -0.5", "")))
    assert last < first / 20
    assert abs(product + 0.25) < 0.05


def test_example_has_at_most_40_lines() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 40
