"""Warming up a worker: one gradient, requested as a caller would, which every worker can answer."""

from __future__ import annotations

import time

import orjson
import pytest

from service.api.media import JSON
from service.core.settings import Settings
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from service.workers.worker_main import warm_up


@pytest.fixture(scope="module")
def warmed_up() -> tuple[Worker, Task, Reply]:
    """A worker after its warm-up, with the job and the reply."""
    worker = Worker(Settings(device="cpu", compile="off"))
    calls: list[tuple[Task, Reply]] = []

    def work(job: Task) -> None:
        calls.append((job, worker(job)))

    warm_up(work)
    ((job, reply),) = calls
    return worker, job, reply


def test_warm_up_computes_the_gradient_of_a_square(warmed_up: tuple[Worker, Task, Reply]) -> None:
    """The gradient is 2 at 1: a forward and a backward pass."""
    _, job, reply = warmed_up
    assert (job.call, reply.status) == ("gradients", 200)
    answer = orjson.loads(reply.body)
    (gradient,) = answer["gradients"]
    assert gradient["tensor"]["data"] in (2.0, [2.0])


def test_warm_up_has_no_tenant_and_a_deadline(warmed_up: tuple[Worker, Task, Reply]) -> None:
    _, job, _ = warmed_up
    assert (job.tenant, job.namespace, job.memory, job.body_type, job.answer_type) == ("", "", None, JSON, JSON)
    assert job.timeout == 60.0
    assert job.expires - job.timeout <= time.monotonic() < job.expires


def test_warm_up_request_is_cached(warmed_up: tuple[Worker, Task, Reply]) -> None:
    worker, job, first = warmed_up
    again = worker(Task(job.call, job.body, "another", 60.0, time.monotonic() + 60.0))
    assert (first.cached, again.cached) == (False, True)


def test_failure_of_the_warm_up_is_raised() -> None:
    def fails(_: Task) -> None:
        raise RuntimeError("no device")

    with pytest.raises(RuntimeError, match="no device"):
        warm_up(fails)
