"""Frames: the messages between the front and a worker process, as bytes.

A frame is a fixed part, then texts and a body. Nothing is pickled: what a worker sends is read field by field, and a
frame costs a microsecond. A body of more than `INLINE` bytes is not in the frame, but in a buffer that it names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from service.api.media import JSON, OCTETS, PIECE_SUMS, PROBLEM, SAFETENSORS
from service.store.writes import Stored, nbytes_of
from service.workers.task import (
    Divisible,
    Estimate,
    NeedsGraph,
    NotDone,
    Reply,
    Task,
    Timings,
    TooLong,
    WantsModel,
    WantsTensors,
    part_text,
    read_part,
)

#: a body of more bytes than this goes through shared memory
INLINE: Final = 64 << 10

#: kinds of frames
TASK, REPLY, SKIPPED, READY, FAILED, FORGET, RELEASED, STILL_REFERENCED, SETTINGS, RESIDENT, CONDEMNED = range(1, 12)
NEEDS_GRAPH, WANTS_TENSORS, TOO_LONG, WANTS_MODEL, DIVISIBLE = NOT_DONE = range(12, 17)

_PREFIX: Final = struct.Struct("<IB")
_NOTE: Final = struct.Struct("<IBI")
_TASK: Final = struct.Struct("<IBBBBBIIIIQddd")
_REPLY: Final = struct.Struct("<IBBHBBIIQ" + "d" * (1 + len(Timings._fields)))
_REPLY_READ: Final = struct.Struct(_REPLY.format.replace("BBHBB", "xxHBB"))  # without what has been read
_NOT_DONE: Final = struct.Struct("<IBBdd")
_RESIDENT: Final = struct.Struct("<IBIQ")
#: of answers; those of other protocols have more
_MEDIA: Final = (JSON, SAFETENSORS, PROBLEM, OCTETS, "application/json+base64", PIECE_SUMS)
_MEDIA_NUMBER: Final = {name: number for number, name in enumerate(_MEDIA)}
_CACHED, _CONSULTED = 1, 2
_MAY_ASK, _MAY_DIVIDE = 1, 2
_NO_GRAPH: Final = (1 << 32) - 1
_NO_BOUND: Final = float("inf")


class BodyPlace(NamedTuple):
    """Place of a body: the number of a buffer, or 0 for the frame itself; and its length in bytes."""

    buffer: int
    nbytes: int


def task_frame(slot: int, task: Task, place: BodyPlace, most_seconds: float | None, graph: bytes | None) -> bytes:
    """Write a task for a worker, with its `graph` where the worker is known not to know it."""
    about = f"{task.call}\n{task.graph or ''}\n{task.reads or task.namespace}\n{task.subject or ''}"
    part = "" if task.part is None else part_text(task.part)
    text = f"{about}\n{task.tenant}\n{part}\n{task.request_id}".encode()
    flags = (_MAY_ASK if task.may_ask else 0) | (_MAY_DIVIDE if task.may_divide else 0)
    inline = b"" if place.buffer else bytes(task.body)
    model = b"" if task.model is None else task.model
    head = _TASK.size + len(text) + len(inline) + (len(graph) if graph is not None else 0) + len(model)
    fixed = _TASK.pack(
        head, TASK, slot, _MEDIA_NUMBER[task.sent], _MEDIA_NUMBER[task.accepted], flags,
        len(text), _NO_GRAPH if graph is None else len(graph), len(model), place.buffer, place.nbytes,
        task.timeout, task.expires, _NO_BOUND if most_seconds is None else most_seconds,
    )  # fmt: skip
    return b"".join((fixed, text, graph or b"", model, inline))


def read_task(frame: bytes, at: int) -> tuple[int, Task, BodyPlace, float | None]:
    """Read a task from a frame at `at`: its slot, itself, the place of its body, and how long it may take."""
    (
        size, _, slot, sent, accepted, flags, texts, graphs, models, buffer, nbytes, timeout, expires, most,
    ) = _TASK.unpack_from(frame, at)  # fmt: skip
    start = at + _TASK.size
    call, graph, namespace, subject, tenant, part, request_id = frame[start : start + texts].decode().split("\n", 6)
    start += texts
    graph_bytes = None
    if graphs != _NO_GRAPH:
        graph_bytes = frame[start : start + graphs]
        start += graphs
    model, start = frame[start : start + models], start + models
    body = frame[start : at + size]
    task = Task(call, body, request_id, timeout, expires, _MEDIA[sent], _MEDIA[accepted], graph or None, graph_bytes)
    task.namespace = namespace
    task.subject = subject or None
    task.tenant = tenant
    task.model = model or None
    task.may_ask = flags & _MAY_ASK != 0
    task.may_divide = flags & _MAY_DIVIDE != 0
    if part:
        task.part = read_part(part)
    return slot, task, BodyPlace(buffer, nbytes), None if most == _NO_BOUND else most


def reply_frame(slot: int, reply: Reply, place: BodyPlace, begun: float, ended: float) -> bytes:
    """Write a reply for the front."""
    more = _more(reply)
    size = _REPLY.size + len(more) + (0 if place.buffer else place.nbytes)
    flags = _CACHED if reply.cached else 0
    if reply.consulted:
        flags |= _CONSULTED
    fixed = _REPLY.pack(
        size, REPLY, slot, reply.status, _MEDIA_NUMBER[reply.media_type], flags,
        len(more), place.buffer, place.nbytes, begun, ended, *reply.timings[1:],
    )  # fmt: skip
    return fixed + more if place.buffer else b"".join((fixed, more, *reply.parts, *reply.kept))


def slot_of(frame: bytes, at: int) -> int:
    """Read the slot of the task that a frame is about."""
    return frame[at + _PREFIX.size]


def read_reply(frame: bytes, at: int, submitted: float) -> tuple[Reply, int, int, float, float]:
    """Read the reply of a frame that begins at `at`, to a task of that time.

    Returns the number of the buffer that its body is in, or 0, and the body's bytes with those of what is kept behind
    it; when its task was begun, and when it was done. Where the parts are in a buffer, `attach_body` gives it those.
    """
    size, status, media, flags, mores, buffer, nbytes, begun, ended, *seconds = _REPLY_READ.unpack_from(frame, at)
    start = at + _REPLY.size
    body = start + mores
    parts = () if buffer else (frame[body : at + size],)
    timed = Timings(begun - submitted, *seconds)
    reply = Reply(status, _MEDIA[media], parts, (), timed, flags & _CACHED != 0, begun=begun)
    if mores:
        more = orjson.loads(frame[start:body])
        reply.headers = tuple((name, value) for name, value in more.get("headers", ()))
        reply.recycle = more.get("recycle")
        reply.stored = tuple(
            Stored(name, etag, dtype, tuple(shape), if_match, durable)
            for name, etag, dtype, shape, if_match, durable in more.get("stored", ())
        )
        if reply.stored and not buffer:
            attach_body(reply, memoryview(frame)[body : at + size])
    if flags & _CONSULTED:
        reply.consulted = True
    return reply, buffer, nbytes, begun, ended


def attach_body(reply: Reply, memory: memoryview) -> None:
    """Give a reply its body, which lies in this memory, and behind it what is kept."""
    end = len(memory)
    kept = []
    for stored in reversed(reply.stored):
        start = end - nbytes_of(stored.dtype, stored.shape)
        kept.append(memory[start:end])
        end = start
    reply.parts, reply.kept = (memory[:end],), tuple(reversed(kept))


def _more(reply: Reply) -> bytes:
    """Write what most replies do not have."""
    if not (reply.headers or reply.recycle or reply.stored):
        return b""
    more = {
        "headers": reply.headers,
        "recycle": reply.recycle,
        "stored": [(s.name, s.etag, s.dtype, s.shape, s.if_match, s.durable) for s in reply.stored],
    }
    return orjson.dumps({name: value for name, value in more.items() if value})


def not_done_frame(slot: int, why: NotDone, begun: float, ended: float) -> bytes:
    """Write for the front why a task was not done."""
    kind, said = _said(why)
    text = orjson.dumps(said)
    return _NOT_DONE.pack(_NOT_DONE.size + len(text), kind, slot, begun, ended) + text


def read_not_done(frame: bytes, at: int) -> tuple[NotDone, float, float]:
    """Read from a frame that begins at `at` why its task was not done, when it was begun, and when given up."""
    size, kind, _, begun, ended = _NOT_DONE.unpack_from(frame, at)
    said = orjson.loads(frame[at + _NOT_DONE.size : at + size])
    return _why(kind, said), begun, ended


def _why(kind: int, said: list[Any]) -> NotDone:
    if kind == TOO_LONG:
        return TooLong(Estimate(*said))
    if kind == WANTS_TENSORS:
        return WantsTensors(tuple(said))
    if kind == DIVISIBLE:
        *numbers, reads = said
        return Divisible._make((*numbers, tuple((name, etag) for name, etag in reads)))
    return WantsModel(*said) if kind == WANTS_MODEL else NeedsGraph()


def _said(why: NotDone) -> tuple[int, list[Any]]:
    match why:
        case TooLong(estimate):
            return TOO_LONG, list(estimate)
        case WantsTensors(names):
            return WANTS_TENSORS, list(names)
        case WantsModel(name):
            return WANTS_MODEL, [name]
        case Divisible():
            return DIVISIBLE, list(why)
        case NeedsGraph():
            return NEEDS_GRAPH, []


class TensorFrame(NamedTuple):
    """News of a resident tensor for a worker: a version, its elements in `data` or in a buffer; or no more of it.

    A version has a dtype.
    """

    namespace: str
    name: str
    etag: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    buffer: int = 0
    data: bytes | memoryview = b""


def tensor_frame(told: TensorFrame) -> bytes:
    """Write what a resident tensor is from here on."""
    shape = ",".join(map(str, told.shape))
    text = f"{told.namespace}\n{told.name}\n{told.etag}\n{told.dtype}\n{shape}".encode()
    size = _RESIDENT.size + len(text) + len(told.data)
    return b"".join((_RESIDENT.pack(size, RESIDENT, len(text), told.buffer), text, told.data))


def read_tensor(frame: bytes, at: int) -> TensorFrame:
    """Read what a resident tensor is, from a frame that begins at `at`."""
    size, _, texts, buffer = _RESIDENT.unpack_from(frame, at)
    start = at + _RESIDENT.size
    namespace, name, etag, dtype, shape = frame[start : start + texts].decode().split("\n")
    extents = tuple(map(int, shape.split(","))) if shape else ()
    return TensorFrame(namespace, name, etag, dtype, extents, buffer, frame[start + texts : at + size])


def note(kind: int, number: int) -> bytes:
    """Write one number: of the slot that was SKIPPED, or of a buffer.

    FORGET one that is gone; one of the reader's is RELEASED; one of the reader's is KEPT, since something still looks
    at it, and must not be written again.
    """
    return _NOTE.pack(_NOTE.size, kind, number)


def read_note(frame: bytes, at: int) -> int:
    """Read the number of a `note`."""
    number: int = _NOTE.unpack_from(frame, at)[2]
    return number


def text(kind: int, value: str) -> bytes:
    """Write a text: CAME, the device; FAILED, why there is none; the SETTINGS, as JSON.

    CONDEMNED: the digest of a plan that is to run without kernels.
    """
    encoded = value.encode()
    return _PREFIX.pack(_PREFIX.size + len(encoded), kind) + encoded


def read_text(frame: bytes, at: int) -> str:
    """Read the text of a `text`."""
    return frame[at + _PREFIX.size : at + _PREFIX.unpack_from(frame, at)[0]].decode()


class Inbox:
    """Frames, as they are cut from the bytes that a socket gives."""

    __slots__ = ("_rest", "_wanted")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._wanted = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes, int]]:
        """Yield kind, bytes and beginning of each frame that is whole now; readers look at nothing behind it."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data = bytes(self._rest)
            self._rest.clear()
        at, end, prefix = 0, len(data), _PREFIX.size
        self._wanted = prefix
        while end - at >= prefix:
            size, kind = _PREFIX.unpack_from(data, at)
            if end - at < size:
                self._wanted = size
                break
            yield kind, data, at
            at += size
        if at < end:
            self._rest += data[at:]
