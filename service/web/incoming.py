"""A body on its way: which of the bytes that come are its, and how fast they have to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from service.web.chunks import Chunks
from service.web.head import too_long
from service.web.parsing import Head

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
        """When the client is late, if that was `due` before it moved so many bytes, and so many are held for it."""
        return min(due + nbytes / max(self.rate, held / TURNOVER), now + self.credit)


class Framing(Protocol):
    """Framing of a body: what tells it from what comes after it."""

    left: int

    @property
    def over(self) -> bool:
        """Whether the body is complete."""

    def unframe(self, data: bytes) -> tuple[list[bytes], bytes]:
        """The parts of the body in these bytes, and what comes after it. Raises Refusal."""

    def passed(self, nbytes: int) -> None:
        """So many of the `left` bytes, which certainly are the body's, went elsewhere."""


class Sink(Protocol):
    """Receiver of a body."""

    def put(self, part: bytes) -> None:
        """The next part. Raises Refusal where there is no memory for it."""

    def place(self, most: int) -> memoryview | None:
        """Where the next bytes may be received straight into, so many at most; None where there is no such place."""

    def placed(self, nbytes: int) -> None:
        """So many bytes were received into it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Wishes of a door for a body: how it is framed, where it goes, and in how many seconds it has to be here."""

    framing: Framing
    sink: Sink
    timeout: float


class Counted:
    """A body of the length that its head announced."""

    def __init__(self, length: int) -> None:
        self.left = length

    @property
    def over(self) -> bool:
        """Whether the body is complete."""
        return not self.left

    def unframe(self, data: bytes) -> tuple[list[bytes], bytes]:
        """The part of these bytes that is the body's, and the rest."""
        part, rest = data[: self.left], data[self.left :]
        self.left -= len(part)
        return [part], rest

    def passed(self, nbytes: int) -> None:
        """So many bytes went elsewhere."""
        self.left -= nbytes


class Incoming:
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
        """Where the next bytes may be received straight into."""
        return self._sink.place(self._framing.left)

    def placed(self, nbytes: int, now: float) -> None:
        """So many bytes were received there."""
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
    """How the body of this head is told from what comes after it. Raises Refusal: body_too_large."""
    if head.chunked:
        return Chunks(head.most, most_chunks)
    if length > head.most:
        raise too_long(head.most, f"{length} bytes")
    return Counted(length)
