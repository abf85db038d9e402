"""Results of a job: replies, reasons why it was not done, and their round trip through frames."""

from __future__ import annotations

import pytest

from service.api.media import JSON
from service.workers import frames
from service.workers.frames import Inbox
from service.workers.task import Estimate, NeedsGraph, NeedsTensors, NotDone, Reply, TaskResult, TooLong

NOT_DONE: list[NotDone] = [NeedsGraph(), NeedsTensors(("w", "ä")), TooLong(Estimate(1.5, 3, 2**40))]


@pytest.mark.parametrize("why", NOT_DONE, ids=lambda why: type(why).__name__)
def test_not_done_is_a_result_but_no_reply(why: NotDone) -> None:
    """The pool and the workers tell them apart with `isinstance`."""
    assert isinstance(why, NotDone)
    assert isinstance(why, TaskResult)
    assert not isinstance(why, Reply)


def test_reply_is_a_result() -> None:
    reply = Reply(503, JSON, [])
    assert isinstance(reply, TaskResult)
    assert not isinstance(reply, NotDone)


def test_other_values_are_no_results() -> None:
    assert not isinstance((1, 2), TaskResult)
    assert not isinstance(None, TaskResult)


@pytest.mark.parametrize("why", NOT_DONE, ids=lambda why: type(why).__name__)
def test_not_done_round_trip(why: NotDone) -> None:
    frame = frames.not_done_frame(5, why, 1.25, 2.5)
    ((kind, read, offset),) = Inbox().feed(frame)
    assert kind in frames.NOT_DONE
    assert frames.slot_of(read, offset) == 5
    result, begun, ended = frames.read_not_done(read, offset)
    assert type(result) is type(why)
    assert result == why
    assert (begun, ended) == (1.25, 2.5)
