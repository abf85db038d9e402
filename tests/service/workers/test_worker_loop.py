"""The loop of a worker: jobs are answered in order, and earlier messages of the front take effect first."""

from __future__ import annotations

import pytest

from service.api.media import JSON
from service.workers import frames
from service.workers.frames import INLINE, TensorFrame
from service.workers.task import NeedsGraph, NeedsTensors, Reply, Task, TaskResult
from tests.service.workers.loops import Loop, sent


def echo(job: Task, _: float | None) -> Reply:
    return Reply(200, JSON, [b"<", bytes(job.body), b">"])


def test_jobs_are_done_in_order_of_arrival() -> None:
    frames_back = Loop(echo).exchange(sent(5, b"a"), sent(0, b"b"), sent(63, b"c"))
    assert frames_back == [(frames.REPLY, (5, b"<a>")), (frames.REPLY, (0, b"<b>")), (frames.REPLY, (63, b"<c>"))]


@pytest.mark.parametrize("nbytes", [INLINE - 2, INLINE - 1, 1 << 20])
def test_answers_of_all_sizes_are_complete(nbytes: int) -> None:
    body = b"x" * nbytes
    (_, (_, answer)), *_ = Loop(lambda *_: Reply(200, JSON, [b"<", body, b">"])).exchange(sent(0))
    assert answer == b"<" + body + b">"


def test_control_page_shows_the_running_slot() -> None:
    slots: list[int | None] = []

    def work(job: Task, most: float | None) -> Reply:
        slots.append(loop.page.executing)
        return echo(job, most)

    loop = Loop(work)
    loop.exchange(sent(7), sent(2))
    assert slots == [7, 2]
    assert loop.page.executing is None
    assert loop.page.vitals == (3, 4), "it has said how it is"


def test_stopped_jobs_are_skipped() -> None:
    done: list[bytes] = []

    def work(job: Task, most: float | None) -> Reply:
        done.append(bytes(job.body))
        loop.page.stops[2][0] = 1
        return echo(job, most)

    loop = Loop(work)
    loop.page.stops[1][0] = 1
    frames_back = loop.exchange(sent(1, b"before"), sent(2, b"meanwhile"), sent(3, b"not"))
    assert frames_back == [(frames.SKIPPED, 1), (frames.SKIPPED, 2), (frames.REPLY, (3, b"<not>"))]
    assert done == [b"meanwhile", b"not"]


@pytest.mark.parametrize("why", [NeedsGraph(), NeedsTensors(("w",))])
def test_reason_of_a_job_that_was_not_done_is_sent(why: TaskResult) -> None:
    ((kind, content),) = Loop(lambda *_: why).exchange(sent(4))
    assert kind in frames.NOT_DONE
    assert content == (4, why)


@pytest.mark.parametrize("most", [None, 0.002])
def test_job_gets_its_time_limit(most: float | None) -> None:
    bounds: list[float | None] = []

    def work(job: Task, bound: float | None) -> Reply:
        bounds.append(bound)
        return echo(job, bound)

    Loop(work).exchange(sent(0, most=most))
    assert bounds == [most]


def test_job_reads_earlier_tensors_of_its_namespace() -> None:
    read: list[object] = []

    def work(job: Task, most: float | None) -> Reply:
        version = job.tensor("w")
        read.append(None if version is None else (version.etag, version.array.tolist()))
        return echo(job, most)

    tensor_frames = [frames.tensor_frame(TensorFrame("ns", "w", tag, "int8", (2,), 0, data)) for tag, data in VERSIONS]
    deletion = frames.tensor_frame(TensorFrame("ns", "w"))
    task = sent(0, namespace="ns")
    Loop(work).exchange(task, tensor_frames[0], task, sent(1), tensor_frames[1], task, deletion, task)
    assert read == [None, (VERSIONS[0][0], [1, 2]), None, (VERSIONS[1][0], [3, 4]), None]


VERSIONS = [(f"{1:016x}", b"\1\2"), (f"{2:016x}", b"\3\4")]


def test_condemned_plans_are_passed_to_the_executor() -> None:
    condemned: list[bytes] = []
    Loop(echo, condemn=condemned.append).exchange(frames.text(frames.CONDEMNED, "ab" * 32), sent(0))
    assert condemned == [b"\xab" * 32]
