"""Workers times BLAS threads do not exceed the processors, however the application is created."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

#: creates an application, solves a triangular system through it, and prints the BLAS threads at each point
PROGRAM = """
import json, sys
from threadpoolctl import threadpool_info
import service.core.machine as machine

machine.cpus = lambda: int(sys.argv[1])

from tests.service.application import create_app
from service.core.settings import Settings
from tests.conftest import Client
from tests.service.support import node, request

def threads():
    return [blas["num_threads"] for blas in threadpool_info() if blas["user_api"] == "blas"]

before = threads()
client = Client(create_app(Settings(device="cpu", workers=int(sys.argv[2]))))
made, lazy = threads(), "scipy" not in sys.modules
answer = client.post("/v1/forward", json=request(node("full", shape=[2, 2], fill=1), node("triangular_solve", 0, 0)))
assert answer.status_code == 200, answer.text
print(json.dumps({"before": before, "made": made, "lazy": lazy, "used": threads()}))
client.close()
"""


def threads(cores: int, workers: int, **environment: str) -> dict[str, Any]:
    """BLAS threads before and after the application is created, and once SciPy's BLAS is loaded."""
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", PROGRAM, str(cores), str(workers)]
    process = subprocess.run(
        command, cwd=ROOT, env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    counts: dict[str, Any] = json.loads(process.stdout)
    return counts


@pytest.mark.parametrize(("cores", "workers", "share"), [(2, 2, 1), (8, 4, 2), (2, 4, 1), (64, 1, 64)])
def test_each_worker_gets_its_share_of_threads(cores: int, workers: int, share: int) -> None:
    counts = threads(cores, workers)
    assert counts["lazy"], "SciPy is loaded at the start"
    assert counts["made"] == [min(share, threads) for threads in counts["before"]]
    assert counts["used"]
    assert max(counts["used"]) <= share


@pytest.mark.parametrize("name", ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"])
def test_fewer_threads_may_be_requested(name: str) -> None:
    assert set(threads(8, 1, **{name: "1"})["used"]) <= {1}


def test_more_threads_than_the_share_are_not_granted() -> None:
    assert set(threads(2, 2, OPENBLAS_NUM_THREADS="2")["used"]) == {1}
