"""The rehearsal of a worker: one gradient, asked for as a caller would, which every worker can answer."""

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
def rehearsed() -> tuple[Worker, Task, Reply]:
    """A worker after it, what it was asked, and what it said."""
    worker = Worker(Settings(device="cpu", compile="off"))
    asked: list[tuple[Task, Reply]] = []

    def work(job: Task) -> None:
        asked.append((job, worker(job)))

    warm_up(work)
    ((job, reply),) = asked
    return worker, job, reply


def test_it_is_the_gradient_of_a_square(rehearsed: tuple[Worker, Task, Reply]) -> None:
    """At 1, where it is 2: the whole way there and back."""
    _, job, reply = rehearsed
    assert (job.call, reply.status) == ("gradients", 200)
    answer = orjson.loads(reply.body)
    (gradient,) = answer["gradients"]
    assert gradient["tensor"]["data"] in (2.0, [2.0])


def test_it_is_nobody_s_request_and_has_its_time(rehearsed: tuple[Worker, Task, Reply]) -> None:
    _, job, _ = rehearsed
    assert (job.tenant, job.namespace, job.memory, job.body_type, job.answer_type) == ("", "", None, JSON, JSON)
    assert job.timeout == 60.0
    assert job.expires - job.timeout <= time.monotonic() < job.expires


def test_what_was_rehearsed_is_known_to_the_worker(rehearsed: tuple[Worker, Task, Reply]) -> None:
    worker, job, first = rehearsed
    again = worker(Task(job.call, job.body, "another", 60.0, time.monotonic() + 60.0))
    assert (first.cached, again.cached) == (False, True)


def test_who_fails_at_it_does_not_become_ready() -> None:
    def fails(_: Task) -> None:
        raise RuntimeError("no device")

    with pytest.raises(RuntimeError, match="no device"):
        warm_up(fails)
