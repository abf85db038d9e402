"""A large answer on its way out: written part by part as the client takes it, from the memory that it lies in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Final

#: bytes that are handed to the socket at once
SENT_AT_ONCE: Final = 1 << 18


class Sending:
    """Writer of parts to a transport whose high-water mark is 0 meanwhile, so that it says when all are out."""

    def __init__(
        self,
        transport: asyncio.Transport,
        parts: Sequence[bytes | memoryview],
        ended: Callable[[], None],
        *,
        secure: bool,
    ) -> None:
        self._secure = secure
        self._transport = transport
        self._slices = slices_to_send(parts)
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
        # Where it is encrypted, what is written has been copied; and that transport takes 0 for a mark that is passed.
        self._transport.set_write_buffer_limits(int(self._secure), 0)
        self._go()

    def _go(self) -> None:
        """Write until the client is behind, or all is out."""
        self._busy = True
        while not self._paused:
            sent = next(self._slices, None)
            if sent is None:
                self._transport.set_write_buffer_limits()
                self._ended()
                return
            self._transport.write(sent)
        self._busy = False


def slices_to_send(parts: Sequence[bytes | memoryview]) -> Iterator[memoryview]:
    """What is handed on at once: each part, or as much of it as `SENT_AT_ONCE`."""
    for part in parts:
        whole = memoryview(part)
        for start in range(0, len(whole), SENT_AT_ONCE):
            yield whole[start : start + SENT_AT_ONCE]


def unsent_bytes(transport: asyncio.Transport) -> int:
    """What the client has not taken yet: here, and in the system's buffer, which says so only a third at a time."""
    waiting = transport.get_write_buffer_size()
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return waiting
    with suppress(OSError):  # not of every kind of socket, nor on every system
        waiting += int.from_bytes(ioctl(descriptor, TIOCOUTQ, bytes(4)), sys.byteorder)
    return waiting
