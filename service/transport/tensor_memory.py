from __future__ import annotations

import asyncio
from itertools import count
from typing import Final

from service.errors import Refusal
from service.transport.control_page import sealed_memory
from service.transport.heap_allocation import HeapAllocation
from service.transport.offload import offload
from service.transport.shared_buffers import SharedBuffer

#: what numbers of buffers begin with that bodies never have
_FIRST: Final = 1 << 32
#: a tensor of more bytes is seen by workers in one place; others, each has a copy of
COPIED: Final = 16 << 10


class TensorAllocation:
    """The memory of one version in a buffer of its own."""

    __slots__ = ("_loop", "buffer", "view")

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: SharedBuffer, nbytes: int) -> None:
        self._loop = loop
        self.buffer: SharedBuffer | None = buffer
        self.view = memoryview(buffer.memory)[:nbytes]

    def give_back(self) -> None:
        """Let go of it. May be called twice."""
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            self.view = memoryview(b"")
            offload(self._loop, buffer.size, buffer.drop)


class TensorMemory:
    """Allocator of memory for tensors: in a buffer where it is large, else in this process alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._numbers = count(_FIRST)

    def allocate(self, nbytes: int) -> TensorAllocation | HeapAllocation:
        """Memory for so many bytes. Raises Refusal: store_full, where the system has none."""
        if nbytes <= COPIED:
            return HeapAllocation(nbytes)
        try:
            buffer = SharedBuffer(next(self._numbers), nbytes, sealed_memory("gradserve-tensor", nbytes))
        except OSError as error:
            detail = f"the system has no memory for a resident tensor of {nbytes} bytes: {error.strerror}"
            raise Refusal("store_full", detail, got=f"{nbytes} bytes") from None
        return TensorAllocation(self._loop, buffer, nbytes)
