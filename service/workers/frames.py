"""Frames: binary messages between the front and a worker process.

A frame has a fixed part, then texts, then a body. Nothing is pickled: a worker that was taken over could otherwise run
code in the front. Writing and reading a frame takes about a microsecond. A body of more than `INLINE` bytes is not in
the frame, but in a shared buffer that the frame names.
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
    NeedsModel,
    NeedsTensors,
    NotDone,
    Reply,
    Task,
    Timings,
    TooLong,
    read_part,
    write_part,
)

#: largest body that travels inside a frame; larger ones go through shared memory
INLINE: Final = 64 << 10

#: kinds of frames
TASK, REPLY, SKIPPED, READY, FAILED, FORGET, RELEASED, STILL_REFERENCED, SETTINGS, RESIDENT, CONDEMNED = range(1, 12)
NEEDS_GRAPH, WANTS_TENSORS, TOO_LONG, WANTS_MODEL, DIVISIBLE = NOT_DONE = range(12, 17)

#: size of the frame; kind
_PREFIX: Final = struct.Struct("<IB")
#: prefix; a number
_NOTE: Final = struct.Struct("<IBI")
#: prefix; slot, media types of body and answer, flags; sizes of texts, graph and model; buffer, size of the body;
#: timeout, expiry, limit of the worker in seconds
_TASK: Final = struct.Struct("<IBBBBBIIIIQddd")
#: prefix; slot, status, media type, flags; size of the extra fields; buffer, size of the body; begin, end; phases
_REPLY: Final = struct.Struct("<IBBHBBIIQ" + "d" * (1 + len(Timings._fields)))
_REPLY_READ: Final = struct.Struct(_REPLY.format.replace("BBHBB", "xxHBB"))  # without kind and slot, read before
#: prefix; slot; begin, end
_NOT_DONE: Final = struct.Struct("<IBBdd")
#: prefix; size of the texts; buffer
_RESIDENT: Final = struct.Struct("<IBIQ")
#: media types of the answers that workers write; those of other protocols have further ones
_MEDIA: Final = (JSON, SAFETENSORS, PROBLEM, OCTETS, "application/json+base64", PIECE_SUMS)
_MEDIA_NUMBER: Final = {name: number for number, name in enumerate(_MEDIA)}
_CACHED, _CONSULTED = 1, 2
_MAY_ASK, _MAY_DIVIDE = 1, 2
_NO_GRAPH: Final = (1 << 32) - 1
_NO_LIMIT: Final = float("inf")


class BodyPlace(NamedTuple):
    """Place of a body: the number of its buffer, or 0 if it is inside the frame; and its length in bytes."""

    buffer: int
    nbytes: int


def task_frame(slot: int, task: Task, place: BodyPlace, most_seconds: float | None, graph: bytes | None) -> bytes:
    """Encode a task for a worker, with its `graph` if the worker is known to lack it."""
    # A set of pinned versions takes the place of the namespace: the worker looks tensors up by either.
    about = f"{task.call}\n{task.graph or ''}\n{task.reads or task.namespace}\n{task.subject or ''}"
    part = "" if task.part is None else write_part(task.part)
    text = f"{about}\n{task.tenant}\n{part}\n{task.request_id}".encode()
    flags = (_MAY_ASK if task.may_ask else 0) | (_MAY_DIVIDE if task.may_divide else 0)
    inline = b"" if place.buffer else bytes(task.body)
    model = b"" if task.model is None else task.model
    head = _TASK.size + len(text) + len(inline) + (len(graph) if graph is not None else 0) + len(model)
    fixed = _TASK.pack(
        head, TASK, slot, _MEDIA_NUMBER[task.body_type], _MEDIA_NUMBER[task.answer_type], flags,
        len(text), _NO_GRAPH if graph is None else len(graph), len(model), place.buffer, place.nbytes,
        task.timeout, task.expires, _NO_LIMIT if most_seconds is None else most_seconds,
    )  # fmt: skip
    return b"".join((fixed, text, graph or b"", model, inline))


def read_task(frame: bytes, start: int) -> tuple[int, Task, BodyPlace, float | None]:
    """Decode the task frame at `start`: return its slot, the task, the place of its body, and its limit in seconds."""
    (
        size, _, slot, sent, accepted, flags, texts, graphs, models, buffer, nbytes, timeout, expires, most,
    ) = _TASK.unpack_from(frame, start)  # fmt: skip
    offset = start + _TASK.size
    call, graph, namespace, subject, tenant, part, request_id = frame[offset : offset + texts].decode().split("\n", 6)
    offset += texts
    graph_bytes = None
    if graphs != _NO_GRAPH:
        graph_bytes = frame[offset : offset + graphs]
        offset += graphs
    model, offset = frame[offset : offset + models], offset + models
    body = frame[offset : start + size]
    task = Task(call, body, request_id, timeout, expires, _MEDIA[sent], _MEDIA[accepted], graph or None, graph_bytes)
    task.namespace = namespace
    task.subject = subject or None
    task.tenant = tenant
    task.model = model or None
    task.may_ask = flags & _MAY_ASK != 0
    task.may_divide = flags & _MAY_DIVIDE != 0
    if part:
        task.part = read_part(part)
    return slot, task, BodyPlace(buffer, nbytes), None if most == _NO_LIMIT else most


def reply_frame(slot: int, reply: Reply, place: BodyPlace, begun: float, ended: float) -> bytes:
    """Encode a reply for the front."""
    extra = _extra_fields(reply)
    size = _REPLY.size + len(extra) + (0 if place.buffer else place.nbytes)
    flags = _CACHED if reply.cached else 0
    if reply.consulted:
        flags |= _CONSULTED
    fixed = _REPLY.pack(
        size, REPLY, slot, reply.status, _MEDIA_NUMBER[reply.media_type], flags,
        len(extra), place.buffer, place.nbytes, begun, ended, *reply.timings[1:],
    )  # fmt: skip
    return fixed + extra if place.buffer else b"".join((fixed, extra, *reply.parts, *reply.stored_data))


def slot_of(frame: bytes, start: int) -> int:
    """Read the slot of the task that a frame is about."""
    return frame[start + _PREFIX.size]


def read_reply(frame: bytes, start: int, submitted: float) -> tuple[Reply, int, int, float, float]:
    """Decode the reply frame at `start`, to a task that was submitted at that time.

    Return the reply; the number of the buffer that holds its body, or 0; the size of the body together with the
    tensors to store, which follow it; and when the worker began and ended the task. If there is a buffer, the caller
    passes its contents to `attach_body`.
    """
    size, status, media, flags, extra_size, buffer, nbytes, begun, ended, *seconds = _REPLY_READ.unpack_from(
        frame, start
    )
    offset = start + _REPLY.size
    body = offset + extra_size
    parts = () if buffer else (frame[body : start + size],)
    timed = Timings(begun - submitted, *seconds)
    reply = Reply(status, _MEDIA[media], parts, (), timed, flags & _CACHED != 0, begun=begun)
    if extra_size:
        extra = orjson.loads(frame[offset:body])
        reply.headers = tuple((name, value) for name, value in extra.get("headers", ()))
        reply.recycle = extra.get("recycle")
        reply.stored = tuple(
            Stored(name, etag, dtype, tuple(shape), if_match, durable)
            for name, etag, dtype, shape, if_match, durable in extra.get("stored", ())
        )
        if reply.stored and not buffer:
            attach_body(reply, memoryview(frame)[body : start + size])
    if flags & _CONSULTED:
        reply.consulted = True
    return reply, buffer, nbytes, begun, ended


def attach_body(reply: Reply, memory: memoryview) -> None:
    """Attach the body that lies in this memory to a reply, and the tensors to store, which follow it."""
    end = len(memory)
    stored_parts = []
    for stored in reversed(reply.stored):
        start = end - nbytes_of(stored.dtype, stored.shape)
        stored_parts.append(memory[start:end])
        end = start
    reply.parts, reply.stored_data = (memory[:end],), tuple(reversed(stored_parts))


def _extra_fields(reply: Reply) -> bytes:
    """Encode the fields that most replies lack."""
    if not (reply.headers or reply.recycle or reply.stored):
        return b""
    extra = {
        "headers": reply.headers,
        "recycle": reply.recycle,
        "stored": [(s.name, s.etag, s.dtype, s.shape, s.if_match, s.durable) for s in reply.stored],
    }
    return orjson.dumps({name: value for name, value in extra.items() if value})


def not_done_frame(slot: int, reason: NotDone, begun: float, ended: float) -> bytes:
    """Encode for the front why a task was not done."""
    kind, fields = _encode_reason(reason)
    text = orjson.dumps(fields)
    return _NOT_DONE.pack(_NOT_DONE.size + len(text), kind, slot, begun, ended) + text


def read_not_done(frame: bytes, start: int) -> tuple[NotDone, float, float]:
    """Decode the frame at `start`: why its task was not done, when it was begun, and when it was given up."""
    size, kind, _, begun, ended = _NOT_DONE.unpack_from(frame, start)
    fields = orjson.loads(frame[start + _NOT_DONE.size : start + size])
    return _decode_reason(kind, fields), begun, ended


def _decode_reason(kind: int, fields: list[Any]) -> NotDone:
    if kind == TOO_LONG:
        return TooLong(Estimate(*fields))
    if kind == WANTS_TENSORS:
        return NeedsTensors(tuple(fields))
    if kind == DIVISIBLE:
        *numbers, reads = fields
        return Divisible._make((*numbers, tuple((name, etag) for name, etag in reads)))
    return NeedsModel(*fields) if kind == WANTS_MODEL else NeedsGraph()


def _encode_reason(reason: NotDone) -> tuple[int, list[Any]]:
    match reason:
        case TooLong(estimate):
            return TOO_LONG, list(estimate)
        case NeedsTensors(names):
            return WANTS_TENSORS, list(names)
        case NeedsModel(name):
            return WANTS_MODEL, [name]
        case Divisible():
            return DIVISIBLE, list(reason)
        case NeedsGraph():
            return NEEDS_GRAPH, []


class TensorFrame(NamedTuple):
    """Update of a resident tensor for a worker: a version, with its elements in `data` or in a buffer, or a deletion.

    A deletion has no dtype.
    """

    namespace: str
    name: str
    etag: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    buffer: int = 0
    data: bytes | memoryview = b""


def tensor_frame(update: TensorFrame) -> bytes:
    """Encode an update of a resident tensor."""
    shape = ",".join(map(str, update.shape))
    text = f"{update.namespace}\n{update.name}\n{update.etag}\n{update.dtype}\n{shape}".encode()
    size = _RESIDENT.size + len(text) + len(update.data)
    return b"".join((_RESIDENT.pack(size, RESIDENT, len(text), update.buffer), text, update.data))


def read_tensor(frame: bytes, start: int) -> TensorFrame:
    """Decode the tensor frame at `start`."""
    size, _, texts, buffer = _RESIDENT.unpack_from(frame, start)
    offset = start + _RESIDENT.size
    namespace, name, etag, dtype, shape = frame[offset : offset + texts].decode().split("\n")
    extents = tuple(map(int, shape.split(","))) if shape else ()
    return TensorFrame(namespace, name, etag, dtype, extents, buffer, frame[offset + texts : start + size])


def note(kind: int, number: int) -> bytes:
    """Encode a frame of one number.

    SKIPPED: the slot of a task that was not done. FORGET: a buffer of the writer's that is gone. RELEASED: a buffer of
    the reader's that may be reused. STILL_REFERENCED: a buffer of the reader's that must not be reused, because a view
    of it is still in use.
    """
    return _NOTE.pack(_NOTE.size, kind, number)


def read_note(frame: bytes, start: int) -> int:
    """Read the number of a `note`."""
    number: int = _NOTE.unpack_from(frame, start)[2]
    return number


def text(kind: int, value: str) -> bytes:
    """Encode a text.

    READY: the name of the device. FAILED: why it could not be opened. SETTINGS: the settings as JSON. CONDEMNED: the
    digest of a plan that is to run without kernels.
    """
    encoded = value.encode()
    return _PREFIX.pack(_PREFIX.size + len(encoded), kind) + encoded


def read_text(frame: bytes, start: int) -> str:
    """Read the text of a `text`."""
    return frame[start + _PREFIX.size : start + _PREFIX.unpack_from(frame, start)[0]].decode()


class Inbox:
    """Splitter of a byte stream into frames."""

    __slots__ = ("_needed", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes, int]]:
        """Yield kind, bytes and offset of each complete frame. The bytes may go on behind the frame."""
        if self._rest:
            # The pieces are joined once the frame is complete: to copy them at each arrival would take quadratic time.
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        start, end, prefix = 0, len(data), _PREFIX.size
        self._needed = prefix
        while end - start >= prefix:
            size, kind = _PREFIX.unpack_from(data, start)
            if end - start < size:
                self._needed = size
                break
            yield kind, data, start
            start += size
        if start < end:
            self._rest += data[start:]
