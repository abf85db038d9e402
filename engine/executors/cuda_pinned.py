"""Pinned memory of the host, which a card reads and writes by itself, and how much of it plans may hold."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from engine.graph.tensor_type import HostArray


class NoPinnedMemory(Exception):
    """The system has none, or none for this process, or less may be pinned than is needed."""


class PinnedMemoryFull(Exception):
    """Others hold what is needed."""


class PinnedBlock:
    """Some bytes, which others may have once nobody refers to this."""

    def __init__(self, pointer: Any, nbytes: int) -> None:
        self.ptr = int(pointer.ptr)
        self.bytes: HostArray = np.frombuffer(pointer, np.uint8, nbytes)


class PinnedMemory:
    """Allocator of blocks, of at most so many bytes together. Threads may share it.

    CuPy's own pool keeps what it had of every size, and knows no bound.
    """

    def __init__(self, cupy: Any, most: int) -> None:
        self._cupy, self._most = cupy, most
        self._held = 0
        #: bytes of blocks that are gone, since somebody looked: a collector may tell, whoever holds the lock
        self._gone: deque[int] = deque()
        self._lock = Lock()

    def block(self, nbytes: int) -> PinnedBlock:
        """Bytes in which anything lies. Raises PinnedMemoryFull and NoPinnedMemory."""
        cuda = self._cupy.cuda
        if nbytes > self._most:
            raise NoPinnedMemory(f"plans may pin {self._most:,} bytes, and one needs more")
        with self._lock:
            while self._gone:
                self._held -= self._gone.popleft()
            if self._held + nbytes > self._most:
                raise PinnedMemoryFull(f"{self._held:,} of {self._most:,} bytes are held")
            try:
                pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
            except cuda.runtime.CUDARuntimeError as error:
                raise NoPinnedMemory(str(error)) from None
            self._held += nbytes
        made = PinnedBlock(pointer, nbytes)
        finalize(made, self._gone.append, nbytes).atexit = False
        return made
