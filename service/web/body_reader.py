"""Request bodies: which received bytes belong to them, and how fast the client must send."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

from service.core.errors import Refusal
from service.web.head import Head, malformed, too_long

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})((?:;[^\x00-\x08\x0a-\x1f\x7f]*)?)\r\n")
_PLAIN_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
#: incomplete line of a chunk size
_PARTIAL_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{0,16}|[0-9A-Fa-f]{1,16}(;[^\x00-\x08\x0a-\x1f\x7f]*)?\r?")
_TRAILER: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*")
#: most bytes of chunk extensions and trailers of one body, which are ignored
_MAX_OVERHEAD: Final = 4096


class _Expected(Enum):
    SIZE = auto()
    DATA = auto()
    LINE_END = auto()
    TRAILER = auto()
    NOTHING = auto()


class ChunkedFraming:
    """Framing of a chunked body (RFC 9112, 7.1): at most `max_bytes` in at most `max_chunks` chunks."""

    def __init__(self, max_bytes: int, max_chunks: int) -> None:
        self.remaining = 0  # bytes of the current chunk that are still to come
        self._expected = _Expected.SIZE
        self._max_bytes, self._max_chunks = max_bytes, max_chunks
        self._count = self._chunks = self._overhead = 0
        self._partial = b""

    @property
    def complete(self) -> bool:
        """Whether the body is complete."""
        return self._expected is _Expected.NOTHING

    def unframe(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the parts of the body in these bytes, and the bytes after its end.

        Raises Refusal: bad_request_framing; body_too_large, also as soon as a chunk announces too many bytes.
        """
        data, position, parts = self._partial + data, 0, list[bytes]()
        self._partial = b""
        while self._expected is not _Expected.NOTHING:
            if self._expected is _Expected.SIZE:
                position = self._whole_chunks(data, position, parts)
            if self._expected is _Expected.DATA:
                part = data[position : position + self.remaining]
                if not part:
                    break
                parts.append(part)
                self.consume(len(part))
                position += len(part)
                continue
            if self._expected is _Expected.SIZE:
                next_position = self._size(data, position)
            else:
                next_position = (
                    self._trailer(data, position)
                    if self._expected is _Expected.TRAILER
                    else self._line_end(data, position)
                )
            if next_position == position:  # the line is incomplete: its beginning waits for the next bytes
                self._partial = data[position:]
                position = len(data)
                break
            position = next_position
        return parts, data[position:]

    def _whole_chunks(self, data: bytes, position: int, parts: list[bytes]) -> int:
        """Parse all complete chunks; return where the next one begins. A flood of tiny chunks must be cheap."""
        first = len(parts)
        while (match := _PLAIN_SIZE.match(data, position)) is not None:
            start = match.end()
            end = start + int(match[1], 16)
            if data[end : end + 2] != b"\r\n" or end == start:
                break
            parts.append(data[start:end])
            self._admit(end - start)
            position = end + 2
        # One part instead of many, since each costs the sink a call.
        if len(parts) > first + 1:
            parts[first:] = [b"".join(parts[first:])]
        return position

    def consume(self, nbytes: int) -> None:
        """Count bytes of the current chunk that were received directly into the sink."""
        self.remaining -= nbytes
        if not self.remaining:
            self._expected = _Expected.LINE_END

    def _size(self, data: bytes, position: int) -> int:
        match = _SIZE.match(data, position)
        if match is None:
            partial = data[position : position + _MAX_OVERHEAD + 32]
            if len(partial) > _MAX_OVERHEAD + 18 or not _PARTIAL_SIZE.fullmatch(partial):
                raise malformed()
            return position
        self.remaining = int(match[1], 16)
        self._add_overhead(len(match[2]))
        self._admit(self.remaining)
        self._expected = _Expected.DATA if self.remaining else _Expected.TRAILER
        return match.end()

    def _admit(self, size: int) -> None:
        self._count += size
        if self._count > self._max_bytes:
            raise too_long(self._max_bytes, "more")
        self._chunks += 1
        if self._chunks > self._max_chunks:
            limit = self._max_chunks
            detail = f"the body may have at most {limit} chunks, but has more; send larger chunks"
            raise Refusal("body_too_large", detail, expected=f"at most {limit} chunks", got="more")

    def _line_end(self, data: bytes, position: int) -> int:
        ending = data[position : position + 2]
        if ending == b"\r\n":
            self._expected = _Expected.SIZE
            return position + 2
        if ending not in (b"", b"\r"):
            raise malformed()
        return position

    def _trailer(self, data: bytes, position: int) -> int:
        end = data.find(b"\r\n", position)
        if end < 0:
            self._check_overhead(len(data) - position)
            return position
        if end == position:
            self._expected = _Expected.NOTHING
        elif not _TRAILER.fullmatch(data, position, end):
            raise malformed()
        self._add_overhead(end + 2 - position)
        return end + 2

    def _add_overhead(self, nbytes: int) -> None:
        self._check_overhead(nbytes)
        self._overhead += nbytes

    def _check_overhead(self, nbytes: int) -> None:
        if self._overhead + nbytes > _MAX_OVERHEAD:
            detail = f"chunk extensions and trailers may have at most {_MAX_OVERHEAD} bytes in total"
            raise Refusal("bad_request_framing", detail)


#: seconds in which a client must transfer as many bytes as the server holds for it
TURNOVER: Final = 240.0


@dataclass(frozen=True, slots=True)
class MinimumRate:
    """Credit of seconds that passes with time, and the rate in bytes per second that earns it back.

    A client at `rate` or faster is never late, however long it takes. A silent client is late when its credit is spent,
    and a trickling one a little later. Credit never exceeds its initial amount: a fast start does not pay for hours of
    silence. While the server holds many bytes for the client, the rate is higher (`TURNOVER`).
    """

    credit: float
    rate: float

    def after(self, due: float, now: float, nbytes: int, held: int = 0) -> float:
        """Return `due`, the time at which a client is late, moved for `nbytes` transferred with `held` bytes held."""
        return min(due + nbytes / max(self.rate, held / TURNOVER), now + self.credit)


class SizedFraming:
    """Framing of a body with Content-Length."""

    def __init__(self, length: int) -> None:
        self.remaining = length

    @property
    def complete(self) -> bool:
        """Whether the body is complete."""
        return not self.remaining

    def unframe(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the part of these bytes that belongs to the body, and the bytes after its end."""
        part, rest = data[: self.remaining], data[self.remaining :]
        self.remaining -= len(part)
        return [part], rest

    def consume(self, nbytes: int) -> None:
        """Count bytes of the body that were received directly into the sink."""
        self.remaining -= nbytes


#: finds the end of a body
Framing: TypeAlias = ChunkedFraming | SizedFraming


class Sink(Protocol):
    """Receiver of a body."""

    def put(self, part: bytes) -> None:
        """Append a part. Raises Refusal if there is no memory for it."""

    def get_buffer(self, size: int) -> memoryview | None:
        """Return memory to receive at most `size` of the next bytes into, None if they should come through `put`."""

    def buffer_updated(self, nbytes: int) -> None:
        """Count bytes that were received into that memory."""


@dataclass(frozen=True, slots=True)
class BodySpec:
    """Specification of how to read a body: its framing, its sink, and the seconds within which it must be complete."""

    framing: Framing
    sink: Sink
    timeout: float


class BodyReader:
    """Reader of one body, from the connection into `sink`; `due` is when the next bytes must have arrived."""

    def __init__(self, framing: Framing, sink: Sink, rate: MinimumRate, now: float) -> None:
        self._framing, self._sink, self._rate = framing, sink, rate
        self.due = now + rate.credit
        self.received = 0

    @property
    def complete(self) -> bool:
        """Whether the body is complete."""
        return self._framing.complete

    def get_buffer(self) -> memoryview | None:
        """Return memory to receive the next bytes into directly, if the sink has it."""
        return self._sink.get_buffer(self._framing.remaining)

    def buffer_updated(self, nbytes: int, now: float) -> None:
        """Count bytes that were received into that memory."""
        self._framing.consume(nbytes)
        self._sink.buffer_updated(nbytes)
        self._advance(nbytes, now)

    def receive(self, data: bytes, now: float) -> bytes:
        """Read the bytes that belong to the body, and return those after its end. Raises Refusal."""
        parts, rest = self._framing.unframe(data)
        for part in parts:
            self._sink.put(part)
        self._advance(len(data) - len(rest), now)
        return rest

    def _advance(self, nbytes: int, now: float) -> None:
        self.received += nbytes
        self.due = self._rate.after(self.due, now, nbytes, self.received)


def framing_of(head: Head, length: int, max_chunks: int) -> Framing:
    """Choose the framing of a head's body. Raises Refusal: body_too_large."""
    if head.chunked:
        return ChunkedFraming(head.max_bytes, max_chunks)
    if length > head.max_bytes:
        raise too_long(head.max_bytes, f"{length} bytes")
    return SizedFraming(length)
