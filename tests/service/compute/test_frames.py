"""Frames: what is put into one comes out of it, however the bytes arrive."""

from __future__ import annotations

import pytest

from service.compute import frames
from service.compute.frames import Inbox, Whereabouts
from service.compute.job import Estimate, Job, Phases, Reply
from service.wire.media import JSON, PROBLEM, SAFETENSORS

JOBS = [
    Job("forward", b"{}", "id", 1.5, 12.25),
    Job("gradients", b"\0\xff\n" * 100, "a\nb\nö", 3600.0, 1e9, SAFETENSORS, SAFETENSORS, "graph"),
    Job("plan", b"", "", 0.001, 0.0, JSON, SAFETENSORS),
]
REPLIES = [
    Reply(200, JSON, [b"{", b"}"], phases=Phases(0.0, 0.1, 0.2, 0.3, 0.15, 0.4), cached=True),
    Reply(200, SAFETENSORS, [b"\0" * 1000, memoryview(b"abc")]),
    Reply(422, PROBLEM, [b"{}"], (("Retry-After", "5"), ("X", "é\n")), recycle="fault"),
    Reply(200, JSON, [], estimate=Estimate(1.5, 10**12, 3)),
    Reply(404, PROBLEM, [], needs_graph=True),
]


def compared(job: Job) -> tuple[object, ...]:
    return job.call, bytes(job.body), job.request_id, job.timeout, job.expires, job.sent, job.accepted, job.graph


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("graph", [None, b"", b"{graph}"])
@pytest.mark.parametrize("most", [None, 0.0, 0.002])
def test_a_job(job: Job, graph: bytes | None, most: float | None) -> None:
    frame = frames.job_frame(63, job, Whereabouts(0, len(job.body)), most, graph)
    slot, read, place, bound = frames.read_job(b"before" + frame + b"behind", 6)
    assert (slot, place, bound) == (63, Whereabouts(0, len(job.body)), most)
    assert compared(read) == compared(job)
    assert read.graph_bytes == graph


def test_a_body_in_a_slab_is_not_in_the_frame() -> None:
    job = Job("forward", b"x" * 100_000, "id", 1.0, 2.0)
    frame = frames.job_frame(0, job, Whereabouts(7, 100_000), None, b"{}")
    assert len(frame) < 1000
    _, read, place, _ = frames.read_job(frame, 0)
    assert (read.body, read.graph_bytes, place) == (b"", b"{}", (7, 100_000))


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply(reply: Reply) -> None:
    frame = frames.reply_frame(5, reply, Whereabouts(0, len(reply.body)), 10.0, 12.0)
    assert frames.slot_of(b"behind" + frame, 6) == 5
    read, slab, nbytes, begun, ended = frames.read_reply(b"before" + frame + b"behind", 6, 9.5)
    assert (begun, ended, slab, nbytes) == (10.0, 12.0, 0, len(reply.body))
    assert read.phases == reply.phases._replace(waited=0.5)
    for name in ("status", "media_type", "body", "headers", "cached", "estimate", "needs_graph", "recycle"):
        assert getattr(read, name) == getattr(reply, name), name


def test_a_reply_in_a_slab_has_no_pieces_yet() -> None:
    frame = frames.reply_frame(0, Reply(200, JSON, [b"x" * 100_000]), Whereabouts(3, 100_000), 0.0, 0.0)
    read, slab, nbytes, _, _ = frames.read_reply(frame, 0, 0.0)
    assert (tuple(read.pieces), slab, nbytes) == ((), 3, 100_000)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
def test_frames_arrive_in_any_pieces(size: int) -> None:
    sent = [frames.job_frame(i, job, Whereabouts(0, len(job.body)), None, None) for i, job in enumerate(JOBS)]
    sent += [frames.note(frames.SKIPPED, 9), frames.text(frames.CAME, "cpu"), frames.text(frames.FAILED, "")]
    inbox, whole, found = Inbox(), b"".join(sent), []
    for start in range(0, len(whole), size):
        for kind, frame, at in inbox.feed(whole[start : start + size]):
            length = int.from_bytes(frame[at : at + 4], "little")
            found.append((kind, frame[at : at + length]))
    assert found == [(frame[4], frame) for frame in sent]
    assert frames.read_note(sent[3], 0) == 9
    assert frames.read_text(sent[4], 0) == "cpu"
