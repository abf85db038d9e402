"""A large answer on its way out: written piece by piece as the client takes it, from the memory that it lies in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

#: bytes that are handed to the socket at once
PIECE: Final = 1 << 18


class Sending:
    """Writes pieces to a transport whose high-water mark is 0 meanwhile, so that it says when all are out."""

    def __init__(
        self, transport: asyncio.Transport, pieces: Sequence[bytes | memoryview], ended: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._parts = _parts(pieces)
        self._ended = ended
        self._paused = False
        self._busy = False

    def pause(self) -> None:
        """The client is behind."""
        self._paused = True

    def resume(self) -> None:
        """What was written is out; go on."""
        self._paused = False
        if not self._busy:
            self._go()

    def begin(self) -> None:
        """Write what can be written at once."""
        self._transport.set_write_buffer_limits(0)
        self._go()

    def _go(self) -> None:
        """Write until the client is behind, or all is out."""
        self._busy = True
        while not self._paused:
            part = next(self._parts, None)
            if part is None:
                self._transport.set_write_buffer_limits()
                self._ended()
                return
            self._transport.write(part)
        self._busy = False


def _parts(pieces: Sequence[bytes | memoryview]) -> Iterator[memoryview]:
    for piece in pieces:
        whole = memoryview(piece)
        for start in range(0, len(whole), PIECE):
            yield whole[start : start + PIECE]
