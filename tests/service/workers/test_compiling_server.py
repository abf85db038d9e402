"""A server that compiles: across restarts, without a compiler, and with a signal during compilation."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import orjson
import pytest

import engine
from engine.codegen.native.native_call import IS_SUPPORTED
from service.core.settings import Settings
from service.workers import child, worker
from service.workers.task import Task
from tests.service.support import feed, node, request

pytest.importorskip("llvmlite")
ROOT = Path(__file__).parents[3]
TIMEOUT = 30
#: a server whose workers run the program that is its first argument
START: Final = """
import functools, sys
from service import app, cli
_, worker, *options = sys.argv
app.ProcessPool = functools.partial(app.ProcessPool, command=[sys.executable, "-c", worker])
cli.main(["serve", "--port", "0", "--device", "cpu", *options])
"""

#: replaces LLVM: reports its start, and takes longer than a test waits
ENDLESS: Final = """
def machine_code(text):
    print("compiling", file=sys.stderr, flush=True)
    threading.Event().wait(600)
kernels.machine_code = machine_code
"""
#: takes a while for each kernel, and never finishes all of them
SLOW: Final = """
def machine_code(text, compiled=kernels.machine_code):
    print("compiling", file=sys.stderr, flush=True)
    threading.Event().wait(0.3)
    return compiled(text)
kernels.machine_code = machine_code
"""
#: reports each compilation and each load
REPORTING: Final = """
def machine_code(text, compiled=kernels.machine_code):
    print("compiling", file=sys.stderr, flush=True)
    return compiled(text)
def native_kernel(*rest, loaded=kernels.native_kernel):
    print("loading", file=sys.stderr, flush=True)
    return loaded(*rest)
kernels.machine_code, kernels.native_kernel = machine_code, native_kernel
"""
BROKEN: Final = """
def machine_code(text):
    raise KernelUnavailable("LLVM is out of order")
kernels.machine_code = machine_code
"""
MISSING: Final = "sys.modules['llvmlite'] = None"
REFUSED: Final = """
class Library:
    mmap, munmap = executable._library().mmap, executable._library().munmap
    mprotect = staticmethod(lambda *_: -1)
executable._library = Library
"""
IMPORTS: Final = """
import sys, threading
import engine.runtime.numpy_backend as kernels
import engine.codegen.native.machine_code as executable
from engine.codegen.native.machine_code import KernelUnavailable
from service.workers.child import computing
from service.workers.worker_main import run_worker
"""


@contextmanager
def start_server(change: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server with this change in its workers, and a client."""
    worker = f"{IMPORTS}{change}\nrun_worker(computing)"
    process = subprocess.Popen(
        [sys.executable, "-c", START, worker, "--workers", "1", "--log-level", "warning", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().rsplit(" ", 1)[-1].strip()
        with httpx.Client(base_url=url, timeout=60) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def stop_server(process: subprocess.Popen[str], number: int) -> list[str]:
    """Stop a server with a signal, check that its status is 0, and return the rest of its stderr."""
    process.send_signal(number)
    _, stderr = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert "Traceback" not in stderr
    return stderr.splitlines()


def wait_for(process: subprocess.Popen[str], words: str) -> list[str]:
    """Wait for these words on stderr; return the lines before them."""
    assert process.stderr is not None
    before = []
    for line in process.stderr:
        if words in line:
            return before
        before.append(line)
    pytest.fail("it has ended")


def layers(count: int) -> dict[str, Any]:
    """Distinct elementwise steps with matrix products between them: one kernel each."""
    nodes = [node("parameter")]
    for i in range(count):
        last = len(nodes) - 1
        shift = node("constant", value={"dtype": "float64", "shape": [], "data": [i / 10]})
        nodes += [node("tanh", last), shift, node("add", last + 1, last + 2), node("exp", last + 3)]
        nodes += [node("matmul", last + 4, last + 4)]
    nodes.append(node("sum", len(nodes) - 1))
    return request(*nodes, feeds=[feed(0, [2, 2], [0.1, 0.2, 0.3, 0.4])])


def answer(client: httpx.Client, body: Any) -> Any:
    response = client.post("/v1/gradients", json=body)
    assert response.status_code == 200, response.text
    return response.json()["gradients"]


@pytest.fixture(scope="module")
def expected() -> Any:
    """The expected answer, from a server that compiles nothing."""
    with start_server("", "--compile", "off") as (_, client):
        return answer(client, layers(2))


def numbers(text: Any) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", repr(text))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [(BROKEN, "LLVM is out of order"), (MISSING, "llvmlite cannot be loaded"), (REFUSED, "refuses executable memory")],
    ids=["broken", "missing", "refused"],
)
def test_server_without_a_compiler(fault: str, said: str, expected: Any) -> None:
    """Each of its two workers warns at most once: one takes calls of unknown cost, the other quick ones."""
    with start_server(fault, "--cache-dir", "none") as (process, client):
        assert [answer(client, layers(2)) for _ in range(3)] == [expected] * 3
        wait_for(process, said)
        assert [answer(client, layers(3)) for _ in range(3)]
        assert answer(client, layers(2)) == expected
        rest = stop_server(process, signal.SIGTERM)
        assert len(rest) <= 1
        assert all(said in line for line in rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "number"), [(ENDLESS, signal.SIGTERM), (SLOW, signal.SIGINT)], ids=["inside", "between"]
)
def test_signal_during_compilation(change: str, number: int) -> None:
    with start_server(change, "--cache-dir", "none") as (process, client):
        first = answer(client, layers(120))
        for _ in range(3):  # two of them by the same worker
            assert answer(client, layers(120)) == first
        wait_for(process, "compiling")
        assert answer(client, layers(120)) == first
        assert set(stop_server(process, number)) <= {"compiling"}


@pytest.mark.slow
def test_restarted_server_loads_its_kernels(tmp_path: Path, expected: Any) -> None:
    for words in ("compiling", "loading"):
        with start_server(REPORTING, "--cache-dir", str(tmp_path)) as (process, client):
            answers = [answer(client, layers(2)) for _ in range(3)]
            assert all(numbers(each) == pytest.approx(numbers(expected), rel=1e-12) for each in answers)
            before = wait_for(process, words)
            # two layers and the sum, three products, and what runs them
            while len(list((tmp_path / "kernels").glob("*.kernel"))) < 6 + IS_SUPPORTED:
                assert client.get("/health/live").status_code == 200
            rest = stop_server(process, signal.SIGTERM)
    assert {*before, *rest} <= {"loading"}


def test_argument_outside_a_kernel_formula_is_answered() -> None:
    """16,484 numbers are five rows of a kernel, the last of them short; 10⁷ is beyond its sine in float32."""
    compiling_worker = worker.Worker(Settings(device="cpu", determinism="fast"))
    x = np.linspace(-3, 3, 16_484, dtype="float32")
    x[7] = 1e7
    graph = node("parameter"), node("sin", 0), node("sum", 1)
    body = orjson.dumps(request(*graph, feeds=[feed(0, [len(x)], x.tolist(), "float32")], encoding="base64"))
    replies = []
    for _ in range(6):
        replies.append(compiling_worker(Task("gradients", body, "id", 60.0, time.monotonic() + 60.0)))
        compiling_worker._executor.settle()
    assert [reply.status for reply in replies] == [200] * 6
    for reply in replies:
        (entry,) = orjson.loads(b"".join(reply.parts))["gradients"]
        gradient = np.frombuffer(b64decode(entry["tensor"]["data_b64"]), "float32")
        np.testing.assert_allclose(gradient, np.cos(x), 1e-5, 1e-5)
    assert compiling_worker._executor.kernels


def test_worker_is_warm_before_it_takes_work(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[object] = []
    monkeypatch.setattr(child, "warm", warmed.append)
    child.computing(Settings(device="cpu", compile="off"))
    assert warmed == [engine.registry()]


def test_plan_cache_bytes_are_divided() -> None:
    """A quarter is for plans that are ready to run, an eighth for graphs that were read."""
    instance = worker.Worker(Settings(device="cpu", compile="off", plan_cache_bytes=1000))
    assert instance._executor.instances.bytes == 250  # type: ignore[attr-defined]
    assert instance.engine.compiler.plans.bytes == 625
    assert instance._programs._cache.bytes == 125
