"""The loop of a worker: each job of the socket has its reply, in order, and the front's notes are heard before it."""

from __future__ import annotations

import pytest

from service.api.media import JSON
from service.workers import frames
from service.workers.frames import INLINE, TensorFrame
from service.workers.task import NeedsGraph, NeedsTensors, Reply, Task, TaskResult
from tests.service.workers.loops import Loop, sent


def echo(job: Task, _: float | None) -> Reply:
    return Reply(200, JSON, [b"<", bytes(job.body), b">"])


def test_jobs_are_done_in_the_order_in_which_they_came() -> None:
    found = Loop(echo).say(sent(5, b"a"), sent(0, b"b"), sent(63, b"c"))
    assert found == [(frames.REPLY, (5, b"<a>")), (frames.REPLY, (0, b"<b>")), (frames.REPLY, (63, b"<c>"))]


@pytest.mark.parametrize("nbytes", [INLINE - 2, INLINE - 1, 1 << 20])
def test_an_answer_of_any_size_comes_whole(nbytes: int) -> None:
    body = b"x" * nbytes
    (_, (_, found)), *_ = Loop(lambda *_: Reply(200, JSON, [b"<", body, b">"])).say(sent(0))
    assert found == b"<" + body + b">"


def test_the_page_says_which_job_runs_and_while_it_does() -> None:
    seen: list[int | None] = []

    def work(job: Task, most: float | None) -> Reply:
        seen.append(loop.page.executing)
        return echo(job, most)

    loop = Loop(work)
    loop.say(sent(7), sent(2))
    assert seen == [7, 2]
    assert loop.page.executing is None
    assert loop.page.vitals == (3, 4), "it has said how it is"


def test_a_job_that_was_stopped_before_is_not_begun_and_one_meanwhile_not_answered() -> None:
    done: list[bytes] = []

    def work(job: Task, most: float | None) -> Reply:
        done.append(bytes(job.body))
        loop.page.stops[2][0] = 1
        return echo(job, most)

    loop = Loop(work)
    loop.page.stops[1][0] = 1
    found = loop.say(sent(1, b"before"), sent(2, b"meanwhile"), sent(3, b"not"))
    assert found == [(frames.SKIPPED, 1), (frames.SKIPPED, 2), (frames.REPLY, (3, b"<not>"))]
    assert done == [b"meanwhile", b"not"]


@pytest.mark.parametrize("why", [NeedsGraph(), NeedsTensors(("w",))])
def test_what_was_not_done_is_said_with_the_reason(why: TaskResult) -> None:
    ((kind, found),) = Loop(lambda *_: why).say(sent(4))
    assert kind in frames.NOT_DONE
    assert found == (4, why)


@pytest.mark.parametrize("most", [None, 0.002])
def test_a_job_is_told_how_long_it_may_take(most: float | None) -> None:
    told: list[float | None] = []

    def work(job: Task, bound: float | None) -> Reply:
        told.append(bound)
        return echo(job, bound)

    Loop(work).say(sent(0, most=most))
    assert told == [most]


def test_a_job_reads_the_tensors_that_were_told_before_it_in_its_own_namespace() -> None:
    read: list[object] = []

    def work(job: Task, most: float | None) -> Reply:
        found = job.tensor("w")
        read.append(None if found is None else (found.etag, found.array.tolist()))
        return echo(job, most)

    told = [frames.tensor_frame(TensorFrame("ns", "w", tag, "int8", (2,), 0, data)) for tag, data in TOLD]
    gone = frames.tensor_frame(TensorFrame("ns", "w"))
    asked = sent(0, namespace="ns")
    Loop(work).say(asked, told[0], asked, sent(1), told[1], asked, gone, asked)
    assert read == [None, (TOLD[0][0], [1, 2]), None, (TOLD[1][0], [3, 4]), None]


TOLD = [(f"{1:016x}", b"\1\2"), (f"{2:016x}", b"\3\4")]


def test_plans_that_are_condemned_are_told_to_whoever_runs_them() -> None:
    told: list[bytes] = []
    Loop(echo, condemn=told.append).say(frames.text(frames.CONDEMNED, "ab" * 32), sent(0))
    assert told == [b"\xab" * 32]
