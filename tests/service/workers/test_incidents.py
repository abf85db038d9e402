"""Workers that crash in their own machine code: counters, log lines and records of it, and running without kernels."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from engine.runtime.crash_record import CRASH_RECORD_BYTES, LastWords, crash_record, last_words, place_named
from service.admin import place_checks as places
from service.admin.diagnosis import Verdict
from service.core.settings import Settings
from service.workers.incidents import MOST_KEPT, Incidents, incidents_in
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.task import Reply, Task
from tests.conftest import ROOT
from tests.service.support import node
from tests.service.workers.pools import code, running, until, whole

COMMAND = (sys.executable, "-P", "-c", Path(__file__).with_name("faulty.py").read_text(encoding="utf-8"))
N = 4096
PLAN, OTHER = "ab" * 32, "cd" * 32


def body(scale: float) -> bytes:
    """sum(exp(x) · x), which is compiled after its second run."""
    x = {"dtype": "float64", "shape": [N], "data": np.linspace(0.0, scale, N).tolist()}
    nodes = [node("parameter"), node("exp", 0), node("mul", 0, 1), node("sum", 2)]
    return orjson.dumps({"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor": x}]})


async def ask(pool: ProcessPool, scale: float = 1.0) -> Reply:
    return await run_task(pool, Task("forward", body(scale), "id", 60.0, time.monotonic() + 60))


def value(reply: Reply) -> float:
    return float(orjson.loads(reply.body)["values"][0]["tensor"]["data"][0])


@asynccontextmanager
async def faulty(cache: Path | None, **stated: Any):
    """A pool of workers whose kernels crash them."""
    settings = {"cache_dir": cache, "state": "memory", "log_level": "error", **stated}
    pool = ProcessPool(Settings(device="cpu", workers=1, **settings), COMMAND)
    await pool.start()
    try:
        await whole(pool)
        yield pool
    finally:
        await pool.close(0)


def expected(scale: float = 1.0) -> float:
    x = np.linspace(0.0, scale, N)
    return float((np.exp(x) * x).sum())


async def until_condemned(pool: ProcessPool) -> None:
    """Ask until kernels have crashed two workers. Each time, a worker without that kernel gives the answer.

    The cause of a crash is recorded after the worker's exit, so no request is sent in between: a third worker could
    get the plan.
    """
    async with asyncio.timeout(120):
        while not pool.stats().condemned:
            reply = await ask(pool)
            assert reply.status == 200 or code(reply) == "worker_died"
            await whole(pool)


@pytest.mark.slow
@running
async def test_plan_that_crashes_two_workers_runs_without_kernels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with faulty(tmp_path) as pool:
        with caplog.at_level(logging.WARNING, "gradserve.workers"):
            await until_condemned(pool)
            for scale in (1.0, 2.0) * 5:
                reply = await ask(pool, scale)
                assert reply.status == 200
                assert value(reply) == pytest.approx(expected(scale), rel=1e-12)
            await whole(pool)
            assert pool._supervisor.spare is not None
            assert (await ask(pool)).status == 200, "by workers that were not there when the others were told"
        assert pool.stats().incidents == {"SIGSEGV": 2}
    lines = [record.getMessage() for record in caplog.records if "SIGSEGV" in record.getMessage()]
    assert len(lines) == 2
    recorded = incidents_in(tmp_path)
    assert len(recorded.condemned[0]) == 64
    for line in lines:
        assert f"was killed by SIGSEGV, in plan {recorded.condemned[0]}: " in line
        assert "sum (node 3)" in line
    assert lines[1].endswith("; the plan has killed two workers, and runs without kernels from now on")
    assert [(each.signal, each.plan) for each in recorded.incidents] == 2 * [("SIGSEGV", recorded.condemned[0])]
    check = places.incidents(Settings(device="cpu", cache_dir=tmp_path))
    assert check.level is Verdict.WARN
    assert recorded.condemned[0][:16] in check.says


@pytest.mark.slow
@running
async def test_condemned_plan_survives_a_restart(tmp_path: Path) -> None:
    async with faulty(tmp_path) as pool:
        await until_condemned(pool)
    async with faulty(tmp_path) as pool:
        for _ in range(10):
            assert (await ask(pool)).status == 200
        assert pool.stats().incidents == {}
        assert pool.stats().condemned == 1


@pytest.mark.slow
@running
async def test_condemned_plan_without_a_cache_folder() -> None:
    async with faulty(None) as pool:
        await until_condemned(pool)
        assert (await ask(pool)).status == 200


@pytest.mark.slow
@running
async def test_external_kill_is_an_incident_without_a_plan(tmp_path: Path) -> None:
    async with faulty(tmp_path) as pool:
        for _ in range(3):
            assert pool._supervisor.quick is not None
            os.kill(pool._supervisor.quick.pid, signal.SIGKILL)
            count = pool.stats().incidents.get("SIGKILL", 0)
            await until(lambda count=count: pool.stats().incidents.get("SIGKILL", 0) == count + 1)
            await whole(pool)
        assert pool.stats().condemned == 0
        pool._supervisor.quick.kill("stuck")
        await until(lambda: pool.stats().restarts.get("stuck"))
        await whole(pool)
        assert pool.stats().incidents == {"SIGKILL": 3}, "those that we end are none"


# ---------------------------------------------------------------- recorded incidents


def record_incidents(folder: Path | None, count: int = 1, plan: str = PLAN, number: int = signal.SIGSEGV) -> Incidents:
    incidents = Incidents(folder)
    for _ in range(count):
        incidents.note(1, number, LastWords(plan, "", "matmul (node 3)"))
    return incidents


def test_external_signals_condemn_no_plan(tmp_path: Path) -> None:
    assert record_incidents(tmp_path, 5, number=signal.SIGKILL).condemned == ()
    assert record_incidents(tmp_path, 1).condemned == ()
    assert record_incidents(tmp_path, 1).condemned == (PLAN,)


def test_plan_in_compilation_is_blamed_if_none_ran(tmp_path: Path) -> None:
    incidents = Incidents(tmp_path)
    for _ in range(2):
        incidents.note(1, signal.SIGILL, LastWords("", OTHER, ""))
    assert incidents.condemned == (OTHER,)


def test_last_hundred_incidents_are_recorded(tmp_path: Path) -> None:
    incidents = Incidents(tmp_path)
    for count in range(MOST_KEPT + 20):
        for _ in range(2):
            incidents.note(1, signal.SIGBUS, LastWords(f"{count:064x}", "", ""))
    recorded = incidents_in(tmp_path)
    assert len(recorded.incidents) == MOST_KEPT
    assert recorded.condemned == tuple(f"{count:064x}" for count in range(20, MOST_KEPT + 20))


def test_incidents_of_another_version_are_ignored(tmp_path: Path) -> None:
    record_incidents(tmp_path, 2)
    assert incidents_in(tmp_path).condemned == (PLAN,)
    file = tmp_path / "incidents.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": "0.0.1"}))
    assert incidents_in(tmp_path) == ((), ())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"version": "0.1.0"}', b" " * (1 << 20),
        b'{"version": "0.1.0", "incidents": 3, "condemned": []}',
        b'{"version": "0.1.0", "incidents": [], "condemned": ["../../etc"]}',
        b'{"version": "0.1.0", "incidents": [], "condemned": [""]}',
        b'{"version": "0.1.0", "incidents": [[1.0, "SIGSEGV", "", "\\u001b[31m"]], "condemned": []}',
        b'{"version": "0.1.0", "incidents": [["now", "SIGSEGV", "", ""]], "condemned": []}',
        b'{"version": "0.1.0", "incidents": [[1.0, "rm -rf", "", ""]], "condemned": []}',
    ],
    ids=lambda content: repr(content[:60]),
)  # fmt: skip
def test_malformed_record_is_ignored(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "incidents.json").write_bytes(content)
    assert incidents_in(tmp_path) == ((), ())
    assert record_incidents(tmp_path, 2).condemned == (PLAN,)
    assert incidents_in(tmp_path).condemned == (PLAN,)


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    record_incidents(tmp_path / "real", 2)
    for folder in "linked", "piped":
        (tmp_path / folder).mkdir()
    (tmp_path / "linked" / "incidents.json").symlink_to(tmp_path / "real" / "incidents.json")
    os.mkfifo(tmp_path / "piped" / "incidents.json")
    assert incidents_in(tmp_path / "linked") == incidents_in(tmp_path / "piped") == ((), ())
    record_incidents(tmp_path / "linked", 1, OTHER)
    assert not (tmp_path / "linked" / "incidents.json").is_symlink()
    assert incidents_in(tmp_path / "real").condemned == (PLAN,)


def test_unwritable_folder_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    incidents = record_incidents(tmp_path / "file", 2)
    assert incidents.condemned == (PLAN,)
    assert "so incidents are only in memory" in caplog.text


# ---------------------------------------------------------------- crash records


def test_crash_record_names_the_running_plan_and_place() -> None:
    memory = memoryview(bytearray(CRASH_RECORD_BYTES))
    before = memoryview(bytearray(CRASH_RECORD_BYTES))
    crash_record.attach(memory)
    try:
        assert last_words(memory) == ("", "", "")
        crash_record.begin_run(bytes.fromhex(PLAN))
        assert last_words(memory) == (PLAN, "", "")
        crash_record.set_place(place_named("exp (node 1)"))
        crash_record.set_compiling(bytes.fromhex(OTHER))
        assert last_words(memory) == (PLAN, OTHER, "exp (node 1)")
        crash_record.end_run()
        crash_record.set_compiling()
        assert last_words(memory)[:2] == ("", "")
        crash_record.begin_run(bytes.fromhex(OTHER))
        assert last_words(memory).place == "", "of another plan"
        crash_record.end_run()
    finally:
        crash_record.attach(before)


def test_corrupt_crash_record_is_printable() -> None:
    words = last_words(memoryview(bytes(range(256))[:CRASH_RECORD_BYTES]))
    assert words.place.isascii()
    assert words.place.isprintable()


@pytest.mark.slow
def test_plan_digest_is_the_same_in_other_processes() -> None:
    program = """
from engine import Compiler, Limits, Program, Statement, TensorType, registry
import numpy as np
ops = registry().ops
p = Program(registry(), [Statement(ops["parameter"]), Statement(ops["exp"], (0,)), Statement(ops["sum"], (1,))])
made = Compiler(Limits()).gradients(p, {0: TensorType((3,), np.dtype("float64"))})
print(made.plan.digest.hex())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert len(outputs.pop()) == 65
