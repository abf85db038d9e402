"""A minute of random requests, and all that were found before; and the fuzzer itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.keeping import kept_files

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are forked, and pages guarded, as Linux does"
)
ROOT = Path(__file__).parents[2]
#: the same requests in every run, so that a change is judged by what it changes
SEED = int(os.environ.get("GRADSERVE_TEST_FUZZ_SEED", "18"))
SHARDS, GRAPHS = 6, 36
"""Requests, in parts that run beside one another: about a minute of a processor in all."""


def fuzz(*arguments: str) -> None:
    """Run the fuzzer. Fails with what it printed."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{' '.join(command)}\n{run.stdout}\n{run.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_requests_are_answered_alike_every_way(shard: int, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    first, most = str(shard * GRAPHS), ["--seconds", "3600", "--jobs", "1", "--findings", str(tmp_path)]
    fuzz("--seed", str(SEED), "--first", first, "--graphs", str(GRAPHS), *most)


@pytest.mark.slow
def test_what_was_found_before_stays_mended() -> None:
    pytest.importorskip("llvmlite")
    assert kept_files()
    fuzz("--kept")
