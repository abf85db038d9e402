"""The work of a server's process: a worker that is calibrated, warm and rehearsed, and shares where it may."""

from __future__ import annotations

import time

import orjson
import pytest

from service.settings import Settings
from service.transport.job import Job, Reply
from service.transport.job_result import TooLong
from service.worker import child
from service.worker.child import computing
from service.worker.together import Together
from service.worker.worker import Worker
from service.worker.worker_loop import Opened
from tests.service.support import SQUARES


@pytest.fixture(scope="module")
def opened() -> Opened:
    return computing(Settings(device="cpu", compile="off", workers=1))


def job() -> Job:
    return Job("gradients", orjson.dumps(SQUARES), "id", 60.0, time.monotonic() + 60.0)


@pytest.mark.slow
def test_it_does_what_a_client_asks_for(opened: Opened) -> None:
    reply = opened.work(job(), None)
    assert isinstance(reply, Reply)
    (gradient,) = orjson.loads(reply.body)["gradients"]
    assert gradient["tensor"]["data"] == [2.0, 4.0]


@pytest.mark.slow
def test_it_may_be_told_to_do_what_is_short_alone(opened: Opened) -> None:
    assert isinstance(opened.work(job(), 0.0), TooLong | Reply)
    assert opened.device == "cpu"
    assert opened.vitals().device_bytes == 0


@pytest.mark.parametrize(
    ("coalesce", "determinism", "shares"), [("on", "fast", True), ("on", "bitwise", False), ("off", "fast", False)]
)
def test_it_shares_where_that_is_asked_for_and_bits_may_differ(
    monkeypatch: pytest.MonkeyPatch, coalesce: str, determinism: str, shares: bool
) -> None:
    """And before it is handed on, all is made that is made at the first use, in this order."""
    order: list[str] = []
    for name in ("divide", "warm", "rehearse"):
        monkeypatch.setattr(child, name, lambda *_, name=name: order.append(name))
    monkeypatch.setattr(Worker, "calibrate", lambda _: order.append("calibrate"))
    made = computing(Settings(device="cpu", compile="off", workers=3, coalesce=coalesce, determinism=determinism))
    assert isinstance(made.sharing, Together) == shares
    assert order == ["divide", "calibrate", "warm", "rehearse"]
