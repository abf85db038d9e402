"""A short run of random requests, and all earlier findings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.codegen.native.native_call import IS_SUPPORTED
from tests.fuzz.keeping import kept_files
from tests.sampling import sampled

pytest.importorskip("llvmlite")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="processes are forked, and pages guarded, as Linux does it"),
]
ROOT = Path(__file__).parents[2]
#: a fixed seed, so that runs differ only by changes of the code
SEED = os.environ.get("GRADSERVE_TEST_FUZZ_SEED", "18")
#: parallel parts, and requests of each: about half a minute of processor time in all
SHARDS, GRAPHS = 4, 18


def fuzz(*arguments: str) -> None:
    """Run the fuzzer in a process that may fork. Fails with its output, which begins with the seed."""
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    print(run.stdout)  # noqa: T201 - the seed, where pytest shows what a test printed
    assert run.returncode == 0, f"{' '.join(command)}\n{run.stdout}\n{run.stderr}"


@pytest.mark.parametrize("shard", sampled(range(SHARDS), lambda shard: [shard // (SHARDS // 2)]))
def test_random_requests_agree_on_every_execution_path(shard: int, tmp_path: Path) -> None:
    which = ("--seed", SEED, "--first", str(shard * GRAPHS), "--graphs", str(GRAPHS))
    fuzz(*which, "--seconds", "3600", "--jobs", "1", "--findings", str(tmp_path))


def test_earlier_findings_stay_fixed() -> None:
    assert kept_files()
    fuzz("--kept")
