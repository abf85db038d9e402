"""The work of a worker process: a worker that is calibrated and warmed up."""

from __future__ import annotations

import time

import orjson
import pytest

from service.core.settings import Settings
from service.workers import child
from service.workers.child import computing
from service.workers.task import Reply, Task, TooLong
from service.workers.worker import Worker
from service.workers.worker_main import Opened
from tests.service.support import SQUARES


@pytest.fixture(scope="module")
def opened() -> Opened:
    return computing(Settings(device="cpu", compile="off", workers=1))


def job() -> Task:
    return Task("gradients", orjson.dumps(SQUARES), "id", 60.0, time.monotonic() + 60.0)


@pytest.mark.slow
def test_worker_answers_a_request(opened: Opened) -> None:
    reply = opened.work(job(), None)
    assert isinstance(reply, Reply)
    (gradient,) = orjson.loads(reply.body)["gradients"]
    assert gradient["tensor"]["data"] == [2.0, 4.0]


@pytest.mark.slow
def test_worker_may_be_limited_to_short_jobs(opened: Opened) -> None:
    assert isinstance(opened.work(job(), 0.0), TooLong | Reply)
    assert opened.device == "cpu"
    assert opened.vitals().device_bytes == 0


def test_worker_is_prepared_before_it_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the order of preparation."""
    order: list[str] = []
    for name in ("divide", "warm", "warm_up"):
        monkeypatch.setattr(child, name, lambda *_, name=name: order.append(name))
    monkeypatch.setattr(Worker, "calibrate", lambda _: order.append("calibrate"))
    computing(Settings(device="cpu", compile="off", workers=3))
    assert order == ["divide", "calibrate", "warm", "warm_up"]
