"""Frames: their content round-trips, however the bytes arrive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.api.media import JSON, PROBLEM, SAFETENSORS
from service.store.writes import Stored
from service.workers import frames
from service.workers.frames import BodyPlace, Inbox, TensorFrame
from service.workers.task import (
    Estimate,
    NeedsGraph,
    NeedsTensors,
    NotDone,
    Piece,
    Reply,
    Task,
    Timings,
    TooLong,
    Total,
)

JOBS = [
    Task("forward", b"{}", "id", 1.5, 12.25),
    Task("gradients", b"\0\xff\n" * 100, "a\nb\nö", 3600.0, 1e9, SAFETENSORS, SAFETENSORS, "graph"),
    Task("plan", b"", "", 0.001, 0.0, JSON, SAFETENSORS),
    Task("putTensor", b"{}", "a\nb", 1.0, 2.0, namespace="ä", subject="w.1", tenant="namespace ä"),
    Task("gradients", b"{}", "id", 1.0, 2.0, may_ask=True, may_divide=True, model=b"\0{}\n"),
    Task("gradients", b"{}", "a\nb", 1.0, 2.0, part=Piece(0, 4), may_ask=True),
    Task("gradients", b"{}", "id", 1.0, 2.0, part=Total(3, 1, 0.5, "compiled", "tf32", 7, 24), may_divide=True),
]
STORED = [
    Stored("w", "0123456789abcdef", "float64", (3, 1), "fedcba9876543210"),
    Stored("none", "0" * 16, "float32", (0, 2), "", durable=False),
    Stored("b", "1" * 16, "bool", (2,), None),
]
REPLIES = [
    Reply(200, JSON, [b"{", b"}"], timings=Timings(0.0, 0.1, 0.2, 0.3, 0.15, 0.4), cached=True),
    Reply(200, SAFETENSORS, [b"\0" * 1000, memoryview(b"abc")]),
    Reply(422, PROBLEM, [b"{}"], (("Retry-After", "5"), ("X", "é\n")), recycle="fault"),
    Reply(200, JSON, [b"{", b"}"], stored=STORED, stored_data=[b"\1" * 24, b"", memoryview(b"\2\3")]),
    Reply(200, JSON, [], stored=STORED[1:2], stored_data=[b""]),
]


def fields_of(job: Task) -> tuple[object, ...]:
    head = job.call, job.request_id, job.timeout, job.expires, job.body_type, job.answer_type
    rest = job.graph, job.namespace, job.subject, job.tenant, job.model, job.part, job.may_ask, job.may_divide
    return *head, bytes(job.body), *rest


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("graph", [None, b"", b"{graph}"])
@pytest.mark.parametrize("most", [None, 0.0, 0.002])
def test_task_round_trip(job: Task, graph: bytes | None, most: float | None) -> None:
    frame = frames.task_frame(63, job, BodyPlace(0, len(job.body)), most, graph)
    slot, read, place, bound = frames.read_task(b"before" + frame + b"behind", 6)
    assert (slot, place, bound) == (63, BodyPlace(0, len(job.body)), most)
    assert fields_of(read) == fields_of(job)
    assert read.graph_bytes == graph


def test_body_in_a_buffer_is_not_in_the_frame() -> None:
    job = Task("forward", b"x" * 100_000, "id", 1.0, 2.0)
    frame = frames.task_frame(0, job, BodyPlace(7, 100_000), None, b"{}")
    assert len(frame) < 1000
    _, read, place, _ = frames.read_task(frame, 0)
    assert (read.body, read.graph_bytes, place) == (b"", b"{}", (7, 100_000))


@pytest.mark.parametrize("reply", REPLIES)
def test_reply_round_trip(reply: Reply) -> None:
    whole = len(reply.body) + sum(map(len, reply.stored_data))
    frame = frames.reply_frame(5, reply, BodyPlace(0, whole), 10.0, 12.0)
    assert frames.slot_of(b"behind" + frame, 6) == 5
    read, buffer, nbytes, begun, ended = frames.read_reply(b"before" + frame + b"behind", 6, 9.5)
    assert (begun, ended, buffer, nbytes) == (10.0, 12.0, 0, whole)
    assert list(read.stored) == list(reply.stored)
    assert [bytes(data) for data in read.stored_data] == [bytes(data) for data in reply.stored_data]
    assert read.timings == reply.timings._replace(waited=0.5)
    for name in ("status", "media_type", "body", "headers", "cached", "recycle"):
        assert getattr(read, name) == getattr(reply, name), name


@pytest.mark.parametrize("why", [NeedsGraph(), NeedsTensors(("w", "ö")), TooLong(Estimate(1.5, 10**12, 3))])
def test_not_done_round_trip(why: NotDone) -> None:
    frame = frames.not_done_frame(5, why, 10.0, 12.0)
    assert frames.slot_of(b"behind" + frame, 6) == 5
    ((kind, read, offset),) = Inbox().feed(frame)
    assert kind in frames.NOT_DONE
    result, begun, ended = frames.read_not_done(b"before" + read[offset:] + b"behind", 6)
    assert (type(result), result, begun, ended) == (type(why), why, 10.0, 12.0)


def test_reply_in_a_buffer_has_no_parts_yet() -> None:
    frame = frames.reply_frame(0, Reply(200, JSON, [b"x" * 100_000]), BodyPlace(3, 100_000), 0.0, 0.0)
    read, buffer, nbytes, _, _ = frames.read_reply(frame, 0, 0.0)
    assert (tuple(read.parts), buffer, nbytes) == ((), 3, 100_000)


def test_stored_data_follows_the_answer_in_a_buffer() -> None:
    reply = Reply(200, JSON, [b"x" * 100_000], stored=STORED, stored_data=[b"\1" * 24, b"", b"\2\3"])
    frame = frames.reply_frame(0, reply, BodyPlace(3, 100_026), 0.0, 0.0)
    assert len(frame) < 1000
    read, buffer, nbytes, _, _ = frames.read_reply(frame, 0, 0.0)
    assert (buffer, nbytes, tuple(read.stored)) == (3, 100_026, tuple(STORED))
    frames.attach_body(read, memoryview(b"x" * 100_000 + b"\1" * 24 + b"\2\3"))
    assert (read.body, list(map(bytes, read.stored_data))) == (reply.body, list(reply.stored_data))


@pytest.mark.parametrize(
    "told",
    [
        TensorFrame("", "w", "0" * 16, "float64", (2, 3), 0, b"\n" * 48),
        TensorFrame("ä", "w.b-c", "f" * 16, "bool", (), 1 << 40),
        TensorFrame("", "w", "f" * 16, "int8", (0,)),
        TensorFrame("n", "w"),
    ],
)
def test_tensor_round_trip(told: TensorFrame) -> None:
    assert frames.read_tensor(b"before" + frames.tensor_frame(told) + b"behind", 6) == told


@pytest.mark.parametrize("may_ask", [False, True])
def test_may_ask_round_trip(may_ask: bool) -> None:
    frame = frames.task_frame(0, replace(JOBS[0], may_ask=may_ask), BodyPlace(0, 2), None, None)
    assert frames.read_task(frame, 0)[1].may_ask == may_ask


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
def test_frames_arrive_in_arbitrary_pieces(size: int) -> None:
    sent = [frames.task_frame(i, job, BodyPlace(0, len(job.body)), None, None) for i, job in enumerate(JOBS)]
    sent += [frames.note(frames.SKIPPED, 9), frames.text(frames.READY, "cpu"), frames.text(frames.FAILED, "")]
    inbox, whole, received = Inbox(), b"".join(sent), []
    for start in range(0, len(whole), size):
        for kind, frame, offset in inbox.feed(whole[start : start + size]):
            length = int.from_bytes(frame[offset : offset + 4], "little")
            received.append((kind, frame[offset : offset + length]))
    assert received == [(frame[4], frame) for frame in sent]
    assert frames.read_note(sent[-3], 0) == 9
    assert frames.read_text(sent[-2], 0) == "cpu"
