"""Outcomes of a job: what is a reply, what is none, and that each way of not being done comes across as itself."""

from __future__ import annotations

import pytest

from service.api.media import JSON
from service.workers import frames
from service.workers.frames import Inbox
from service.workers.task import Estimate, NeedsGraph, NeedsTensors, NotDone, Reply, TaskResult, TooLong

NOT_DONE: list[NotDone] = [NeedsGraph(), NeedsTensors(("w", "ä")), TooLong(Estimate(1.5, 3, 2**40))]


@pytest.mark.parametrize("why", NOT_DONE, ids=lambda why: type(why).__name__)
def test_what_was_not_done_is_a_result_and_no_reply(why: NotDone) -> None:
    """`isinstance` with either name is how the pool and a worker tell them apart."""
    assert isinstance(why, NotDone)
    assert isinstance(why, TaskResult)
    assert not isinstance(why, Reply)


def test_a_reply_is_a_result_that_was_done() -> None:
    reply = Reply(503, JSON, [])
    assert isinstance(reply, TaskResult)
    assert not isinstance(reply, NotDone)


def test_what_a_task_is_between_two_steps_is_no_result() -> None:
    assert not isinstance((1, 2), TaskResult)
    assert not isinstance(None, TaskResult)


@pytest.mark.parametrize("why", NOT_DONE, ids=lambda why: type(why).__name__)
def test_each_way_comes_across_as_itself(why: NotDone) -> None:
    frame = frames.not_done_frame(5, why, 1.25, 2.5)
    ((kind, read, at),) = Inbox().feed(frame)
    assert kind in frames.NOT_DONE
    assert frames.slot_of(read, at) == 5
    found, begun, ended = frames.read_not_done(read, at)
    assert type(found) is type(why)
    assert found == why
    assert (begun, ended) == (1.25, 2.5)
