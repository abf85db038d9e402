"""A worker process for the tests of the pool: the JSON of a job's body has the instructions.

Started as `python -m tests.service.workers.trial_child`, like `service.workers.child`.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import Any

import numpy as np
import orjson

from engine import Deadline, EngineError
from service.api.media import JSON, PROBLEM
from service.api.residents import Version
from service.core.errors import from_engine
from service.core.settings import Settings
from service.store.writes import Stored
from service.workers.shared_memory import Vitals
from service.workers.task import Estimate, NeedsGraph, NeedsTensors, Reply, Task, TaskResult, Timings, TooLong
from service.workers.worker_main import Opened, run_worker

_graphs: set[str] = set()
_leaked: list[Any] = []


def execute(job: Task, most_seconds: float | None) -> TaskResult:
    """Follow the body, in the order of its fields: {"estimate": 3, "sleep": 1, "answer": "x"}."""
    if job.graph is not None and job.graph not in _graphs:
        if job.graph_bytes is None:
            return NeedsGraph()
        _graphs.add(job.graph)
    instructions = orjson.loads(bytes(job.body).strip(b" \0"))
    if most_seconds is not None and instructions.get("estimate", 0) > most_seconds:
        return TooLong(Estimate(instructions["estimate"], 0, instructions.get("promises", 0)))
    try:
        reply: TaskResult = Reply(200, JSON, [b"done"], timings=Timings(0, 0.1, 0.2, 0.3, 0.15, 0.4), cached=True)
        for name, value in instructions.items():
            if name in _ACTS:
                reply = _ACTS[name](job, value) or reply
    except EngineError as error:
        return Reply(504, PROBLEM, [from_engine(error).body(job.request_id)])
    return reply


def sleep(job: Task, seconds: float) -> None:
    """Work that checks its deadline."""
    deadline, end = Deadline(job.timeout, job.expires - job.timeout, job.stop), time.monotonic() + seconds
    while time.monotonic() < end:
        deadline.check()
        time.sleep(0.001)


def stuck(_: Task, seconds: float) -> None:
    """Work that does not check its deadline."""
    time.sleep(seconds)


def die_unless(job: Task, path: str) -> None:
    """Die the first time."""
    if not os.path.exists(path):  # noqa: PTH110
        open(path, "x").close()  # noqa: PTH123
        die(job, None)


def die(_: Task, __: object) -> None:
    """Die as if the machine code had crashed."""
    os.kill(os.getpid(), signal.SIGKILL)


def leak(job: Task, _: object) -> None:
    """Keep a view of the body."""
    _leaked.append(memoryview(job.body))


def grow(_: Task, nbytes: int) -> None:
    """Keep memory."""
    _leaked.append(b"x" * nbytes)


def allocate(_: Task, nbytes: int) -> Reply:
    """Report whether this much memory can be allocated."""
    try:
        bytearray(nbytes)
    except MemoryError:
        return Reply(200, JSON, [b"no memory"])
    return Reply(200, JSON, [b"memory"])


def seen(job: Task, _: object) -> Reply:
    """Answer the body as it arrived."""
    return Reply(200, JSON, [bytes(job.body)])


def spare(job: Task, nbytes: int) -> Reply:
    """Answer the bytes after the body in its buffer."""
    assert isinstance(job.body, memoryview)
    whole = memoryview(job.body.obj.base)
    return Reply(200, JSON, [bytes(whole[len(job.body) : len(job.body) + nbytes])])


def read(job: Task, names: list[str]) -> TaskResult:
    """Answer etag, size, first and last byte of each resident tensor; null for a missing one."""
    versions = {name: job.resident(name) for name in names}
    if job.may_ask and None in versions.values():
        return NeedsTensors(names)
    return Reply(200, JSON, [orjson.dumps([summary_of(version) for version in versions.values()])])


def summary_of(version: Version | None) -> list[Any] | None:
    """Etag, size, first and last byte of a version."""
    if version is None:
        return None
    flat = version.array.reshape(-1).view(np.uint8)
    return [version.etag, flat.size, int(flat[0]), int(flat[-1])]


def hold(job: Task, seconds: float) -> TaskResult | None:
    """Read the tensor w, wait, and read it again; answer whether it is the same."""
    version = job.resident("w")
    if version is None:
        return NeedsTensors(["w"])
    before = version.array.tobytes()
    sleep(job, seconds)
    return Reply(200, JSON, [orjson.dumps([version.etag, version.array.tobytes() == before])])


def store(_: Task, sizes: dict[str, int]) -> Reply:
    """Store tensors of these sizes; each byte encodes the size."""
    stored = [
        Stored(name, f"{i:016x}", "uint8", (nbytes,), "*", i == 0) for i, (name, nbytes) in enumerate(sizes.items())
    ]
    data = [bytes([nbytes % 251]) * nbytes for nbytes in sizes.values()]
    return Reply(200, JSON, [b"st", b"ored"], stored=stored, stored_data=data)


_ACTS = {
    "read": read,
    "hold": hold,
    "store": store,
    "sleep": sleep,
    "stuck": stuck,
    "die": die,
    "die_unless": die_unless,
    "leak": leak,
    "grow": grow,
    "allocate": allocate,
    "seen": seen,
    "spare": spare,
    "answer": lambda job, nbytes: Reply(200, JSON, [b"a" * (nbytes - 1), b"z"]),
    "recycle": lambda job, why: Reply(500, PROBLEM, [b"{}"], recycle=why),
    "pid": lambda job, value: Reply(200, JSON, [b"%d" % os.getpid()]),
    "limit": lambda job, value: Reply(200, JSON, [b"%d" % resource.getrlimit(resource.RLIMIT_DATA)[0]]),
    "nice": lambda job, value: Reply(200, JSON, [b"%d" % os.nice(0)]),
    "job": lambda job, value: Reply(
        200,
        JSON,
        [orjson.dumps([job.call, job.graph, job.request_id, job.body_type, job.answer_type])],
        (("X-Test", "é"),),
    ),
}


def trial(_: Settings) -> Opened:
    """Open the work on the device that the tests name."""
    if os.environ.get("GRADSERVE_TEST_NO_DEVICE"):
        raise RuntimeError("there is no such device")
    return Opened(execute, "cpu", lambda: Vitals(3, 4))


if __name__ == "__main__":
    run_worker(trial)
