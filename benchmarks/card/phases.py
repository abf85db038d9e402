"""What is measured: tests, sanitizer, benchmarks with peers, requests, compiling. A phase says what it lacks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.card.closed import measure
from benchmarks.peers import SIDES
from benchmarks.problems.deep_networks import DEEP_ON_CARDS
from benchmarks.record import ROOT
from benchmarks.sides import is_installed
from benchmarks.suite import find
from engine.cuda.cupy_backend import is_available

Row = Mapping[str, Any]
Rows = Iterator[tuple[str, Row]]

#: of a phase, at most: it is to fit where a command may take ten minutes
MOST_SECONDS: Final = 570.0
BENCHED: Final = ("W1", "W1-host", "W2", "W3", "W4", "W4n", "W5", "W6", "N1", "N2", *DEEP_ON_CARDS)
PEERS: Final = ("torch", "torch.compile", "jax")
#: tests that launch kernels of ours, or have them launched
KERNEL_TESTS: Final = ("tests/engine/cuda/test_cuda.py", "tests/engine/cuda/test_cuda_segments.py")
TOOLS: Final = ("memcheck", "racecheck")
SERVED: Final = ("W1", "W2")
CLIENTS: Final = (1, 64)
COMPILED: Final = ("W4", "W6")


class Lacking(Exception):
    """A phase, or a part of it, cannot be run here, for the reason given."""


@dataclass(frozen=True)
class Phase:
    """Its rows are measured within so many seconds, of which it gets a `share` of all. Raises Lacking."""

    share: float
    rows: Callable[[float], Rows]


def tests(seconds: float) -> Rows:
    """What `make test-gpu` runs."""
    _require_card()
    _require("pytest", "hypothesis")
    several = ["-n", str(len(os.sched_getaffinity(0)))] if find_spec("xdist") else []
    ended = run([*_pytest(), *several, "tests/engine", "tests/contract"], seconds, GRADSERVE_TEST_DEVICE="cuda")
    yield "engine and contract", {**outcomes(ended.text), "seconds": ended.seconds}


def sanitizer(seconds: float) -> Rows:
    """Accesses beyond memory, and races, in the tests of kernels."""
    _require_card()
    _require("pytest", "hypothesis")
    command = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if command is None:
        raise Lacking("compute-sanitizer is not installed")
    for tool in TOOLS:
        called = [command, "--tool", tool, "--target-processes", "all", *_pytest(), *KERNEL_TESTS]
        yield tool, _unless_late(lambda called=called: _sanitized(called, seconds / len(TOOLS)))  # type: ignore[misc]


def _sanitized(command: Sequence[str], seconds: float) -> Row:
    ended = run(command, seconds, GRADSERVE_TEST_DEVICE="cuda")
    return {"errors": errors(ended.text), **outcomes(ended.text), "seconds": ended.seconds}


def bench(seconds: float) -> Rows:
    """Workloads beside the peers that are installed, the sides taking turns."""
    _require_card()
    found = [side for side in PEERS if is_installed(SIDES[side][1])]
    for side in PEERS:
        if side not in found:
            yield side, {"not_run": f"{SIDES[side][1]} is not installed"}
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "results.json"
        asked = ["--only", ",".join(BENCHED), "--sides", ",".join(found), "--output", str(kept)]
        command = [sys.executable, "-m", "benchmarks.report", "--device", "cuda", "--quick", *asked]
        late = _unless_late(lambda: {"status": run(command, seconds).status})
        groups = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    rows = {name: row for group in groups.values() for name, row in group.items()}
    for name in BENCHED:
        yield name, _benched(rows[name]) if name in rows else {"not_run": late.get("not_run", "it failed")}


def _benched(row: Row) -> Row:
    if "failed" in row:
        return {"not_run": row["failed"]}
    sides = {
        side: {key: each[key] for key in ("median", "lower", "upper", "ratio")} for side, each in row["sides"].items()
    }
    return {"title": row["title"], "sides": sides, "without": row["without"]}


def requests(seconds: float) -> Rows:
    """W1 and W2 by HTTP."""
    _require_card()
    try:
        from benchmarks.service import bodies, servers  # noqa: PLC0415 - needs the service's packages
        from service.core.settings import Settings  # noqa: F401, PLC0415 - as before
    except ImportError as error:
        raise Lacking(f"a package of the server is not installed: {error.name}") from None
    each = seconds / (len(SERVED) * len(CLIENTS)) / 2
    with servers.gradserve(device="cuda") as server:
        for workload in SERVED:
            body, url = bodies.in_json(find(workload)()), f"{server.url}/v1/gradients"
            measure(url, body, 1, each / 2)  # its kernels come from the background
            for clients in CLIENTS:
                found = measure(url, body, clients, each)
                yield f"{workload}, {clients} clients", {"workload": workload, "clients": clients, **found}


def compiling(seconds: float) -> Rows:
    """Machine code of a workload with nothing kept."""
    _require_card()
    for workload in COMPILED:
        yield workload, _unless_late(lambda workload=workload: _cold(workload, seconds / len(COMPILED)))  # type: ignore[misc]


def _cold(workload: str, seconds: float) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        ended = run([sys.executable, "-m", "benchmarks.card.cold", workload], seconds, GRADSERVE_CACHE_DIR=folder)
    if ended.status:
        return {"not_run": ended.text.strip().splitlines()[-1][:200]}
    found: Row = json.loads(ended.text.strip().splitlines()[-1])
    return found


PHASES: Final[Mapping[str, Phase]] = {
    "tests": Phase(0.25, tests),
    "sanitizer": Phase(0.25, sanitizer),
    "bench": Phase(0.3, bench),
    "requests": Phase(0.1, requests),
    "compile": Phase(0.1, compiling),
}


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its status, what it said, and how long it took."""

    status: int
    text: str
    seconds: float


def run(command: Sequence[str], seconds: float, **environment: str) -> Ended:
    """Run a command from the root of the project. Raises Lacking where it takes longer."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Lacking(f"it was given {seconds:.0f} s, which was too little") from None
    return Ended(done.returncode, done.stdout, time.perf_counter() - start)


def outcomes(text: str) -> dict[str, int]:
    """How many tests passed, failed and were skipped, as pytest says in its last line. Raises Lacking without one."""
    lines = [line for line in text.splitlines() if re.search(r"\d+ (passed|failed|error|skipped)", line)]
    if not lines:
        raise Lacking(f"pytest did not end: {text.strip()[-200:]}")
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", lines[-1])}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return {"passed": counts.get("passed", 0), "failed": failed, "skipped": counts.get("skipped", 0)}


def errors(text: str) -> int:
    """What compute-sanitizer has found, in all processes. Raises Lacking where it does not say so."""
    found = re.findall(r"SUMMARY: (\d+) (?:error|hazard)", text)
    if not found:
        raise Lacking(f"compute-sanitizer has not summed up: {text.strip()[-200:]}")
    return sum(map(int, found))


def _unless_late(measured: Callable[[], Row]) -> Row:
    """A row, or why there is none."""
    try:
        return measured()
    except Lacking as error:
        return {"not_run": str(error)}


def _pytest() -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "--slow"]


def _require(*modules: str) -> None:
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise Lacking(f"{' and '.join(missing)} not installed")


def _require_card() -> None:
    if not is_installed("cupy"):
        raise Lacking("CuPy is not installed")
    if not is_available():
        raise Lacking("there is no card")
