"""A body on its way: which of the bytes that come are its, and how fast they have to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

from service.core.errors import Refusal
from service.web.head import Head, malformed, too_long

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})((?:;[^\x00-\x08\x0a-\x1f\x7f]*)?)\r\n")
_PLAIN_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
#: what may become the line of a size
_HALF_A_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{0,16}|[0-9A-Fa-f]{1,16}(;[^\x00-\x08\x0a-\x1f\x7f]*)?\r?")
_TRAILER: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*")
#: bytes of extensions and trailers of one body, which nobody reads
_BESIDE: Final = 4096


class _Next(Enum):
    SIZE = auto()
    DATA = auto()
    LINE_END = auto()
    TRAILER = auto()
    NOTHING = auto()


class ChunkedFraming:
    """The framing of a chunked body (RFC 9112, 7.1), of at most `most` bytes in `most_chunks` chunks."""

    def __init__(self, most: int, most_chunks: int) -> None:
        self.left = 0  # bytes of the chunk at hand that are still to come
        self._next = _Next.SIZE
        self._most, self._most_chunks = most, most_chunks
        self._count = self._chunks = self._beside = 0
        self._half = b""

    @property
    def over(self) -> bool:
        """Whether the body is complete."""
        return self._next is _Next.NOTHING

    def unframe(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the parts of the body in these bytes, and what comes after it. Raises Refusal.

        bad_request_framing, body_too_large: also for a size that is announced.
        """
        data, at, parts = self._half + data, 0, list[bytes]()
        self._half = b""
        while self._next is not _Next.NOTHING:
            if self._next is _Next.SIZE:
                at = self._whole_chunks(data, at, parts)
            if self._next is _Next.DATA:
                part = data[at : at + self.left]
                if not part:
                    break
                parts.append(part)
                self.passed(len(part))
                at += len(part)
                continue
            if self._next is _Next.SIZE:
                beyond = self._size(data, at)
            else:
                beyond = self._trailer(data, at) if self._next is _Next.TRAILER else self._line_end(data, at)
            if beyond == at:
                self._half = data[at:]
                at = len(data)
                break
            at = beyond
        return parts, data[at:]

    def _whole_chunks(self, data: bytes, at: int, parts: list[bytes]) -> int:
        """Take the chunks that are all there: a flood of small ones must not cost much. Where the next one begins."""
        begun = len(parts)
        while (found := _PLAIN_SIZE.match(data, at)) is not None:
            start = found.end()
            end = start + int(found[1], 16)
            if data[end : end + 2] != b"\r\n" or end == start:
                break
            parts.append(data[start:end])
            self._admit(end - start)
            at = end + 2
        if len(parts) > begun + 1:
            parts[begun:] = [b"".join(parts[begun:])]
        return at

    def passed(self, nbytes: int) -> None:
        """Note that so many bytes of the chunk at hand went elsewhere."""
        self.left -= nbytes
        if not self.left:
            self._next = _Next.LINE_END

    def _size(self, data: bytes, at: int) -> int:
        found = _SIZE.match(data, at)
        if found is None:
            half = data[at : at + _BESIDE + 32]
            if len(half) > _BESIDE + 18 or not _HALF_A_SIZE.fullmatch(half):
                raise malformed()
            return at
        self.left = int(found[1], 16)
        self._spend(len(found[2]))
        self._admit(self.left)
        self._next = _Next.DATA if self.left else _Next.TRAILER
        return found.end()

    def _admit(self, size: int) -> None:
        self._count += size
        if self._count > self._most:
            raise too_long(self._most, "more")
        self._chunks += 1
        if self._chunks > self._most_chunks:
            limit = self._most_chunks
            detail = f"the body may come in at most {limit} chunks, but has more; send larger ones"
            raise Refusal("body_too_large", detail, expected=f"at most {limit} chunks", got="more")

    def _line_end(self, data: bytes, at: int) -> int:
        found = data[at : at + 2]
        if found == b"\r\n":
            self._next = _Next.SIZE
            return at + 2
        if found not in (b"", b"\r"):
            raise malformed()
        return at

    def _trailer(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n", at)
        if end < 0:
            self._check_spent(len(data) - at)
            return at
        if end == at:
            self._next = _Next.NOTHING
        elif not _TRAILER.fullmatch(data, at, end):
            raise malformed()
        self._spend(end + 2 - at)
        return end + 2

    def _spend(self, nbytes: int) -> None:
        self._check_spent(nbytes)
        self._beside += nbytes

    def _check_spent(self, nbytes: int) -> None:
        if self._beside + nbytes > _BESIDE:
            detail = f"extensions and trailers of chunks may have at most {_BESIDE} bytes together"
            raise Refusal("bad_request_framing", detail)


#: seconds in which as much has to move as is held: who has the server hold much is fast, or gives way
TURNOVER: Final = 240.0


@dataclass(frozen=True, slots=True)
class MinimumRate:
    """Seconds of credit, which pass as time does, and the bytes a second that earn them back: more where much is held.

    At `rate` or faster a client is never late, for as long as it takes. One that falls silent is, when its credit is
    spent; so is one that trickles, a little later. Credit never exceeds its first amount: what came fast once does not
    pay for hours of silence.
    """

    credit: float
    rate: float

    def after(self, due: float, now: float, nbytes: int, held: int = 0) -> float:
        """Move the time at which a client is late, `due`, since it moved so many bytes and so many are held for it."""
        return min(due + nbytes / max(self.rate, held / TURNOVER), now + self.credit)


class Counted:
    """A body of the length that its head announced."""

    def __init__(self, length: int) -> None:
        self.left = length

    @property
    def over(self) -> bool:
        """Whether the body is complete."""
        return not self.left

    def unframe(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the part of these bytes that is the body's, and the rest."""
        part, rest = data[: self.left], data[self.left :]
        self.left -= len(part)
        return [part], rest

    def passed(self, nbytes: int) -> None:
        """Note that so many bytes went elsewhere."""
        self.left -= nbytes


#: what tells a body from what comes after it
Framing: TypeAlias = ChunkedFraming | Counted


class Sink(Protocol):
    """Receiver of a body."""

    def put(self, part: bytes) -> None:
        """The next part. Raises Refusal where there is no memory for it."""

    def place(self, most: int) -> memoryview | None:
        """Give memory to receive so many of the next bytes into at most; None where there is no such place."""

    def placed(self, nbytes: int) -> None:
        """Note that so many bytes were received into it."""


@dataclass(frozen=True, slots=True)
class BodySpec:
    """Wishes of a door for a body: how it is framed, where it goes, and in how many seconds it has to be here."""

    framing: Framing
    sink: Sink
    timeout: float


class BodyReader:
    """One body, from the connection into `sink`; `due` is when the next of it has to be there."""

    def __init__(self, framing: Framing, sink: Sink, rate: MinimumRate, now: float) -> None:
        self._framing, self._sink, self._rate = framing, sink, rate
        self.due = now + rate.credit
        self.received = 0

    @property
    def over(self) -> bool:
        """Whether the body is complete."""
        return self._framing.over

    def place(self) -> memoryview | None:
        """Choose where the next bytes may be received straight into."""
        return self._sink.place(self._framing.left)

    def placed(self, nbytes: int, now: float) -> None:
        """Note that so many bytes were received there."""
        self._framing.passed(nbytes)
        self._sink.placed(nbytes)
        self._came(nbytes, now)

    def receive(self, data: bytes, now: float) -> bytes:
        """Take what is the body's of these bytes; the rest. Raises Refusal."""
        parts, rest = self._framing.unframe(data)
        for part in parts:
            self._sink.put(part)
        self._came(len(data) - len(rest), now)
        return rest

    def _came(self, nbytes: int, now: float) -> None:
        self.received += nbytes
        self.due = self._rate.after(self.due, now, nbytes, self.received)


def framing_of(head: Head, length: int, most_chunks: int) -> Framing:
    """Choose the framing of the body of this head. Raises Refusal: body_too_large."""
    if head.chunked:
        return ChunkedFraming(head.most, most_chunks)
    if length > head.most:
        raise too_long(head.most, f"{length} bytes")
    return Counted(length)
