"""The example that takes a network of PyTorch to Triton's client: it is short, and the network has learned."""

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
def test_what_it_prints(start_server: Callable[..., RunningServer]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("tritonclient.http", reason="Triton's client is not installed")
    server = start_server("--facades", "openinference", "--workers", "1", "--state", "memory")
    command = [sys.executable, str(SCRIPT), server.url]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    first, last, product = map(float, re.findall(r"-?\d+\.\d+", found.stdout.replace("0.5 times -0.5", "")))
    assert last < first / 20
    assert abs(product + 0.25) < 0.05


def test_it_is_short() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 40
