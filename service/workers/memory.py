"""Memory that the front allocates: for bodies, which are claimed as they come, and for resident tensors.

A version of a tensor has memory of its own, in a buffer that workers can see if it is large. It is never written again,
nor used for another: whoever still reads it sees what was there, and it goes back to the system with the last reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final

import numpy as np

from service.core.errors import Refusal
from service.workers.claims import Claim
from service.workers.shared_memory import LARGEST, SharedBuffer, SharedBuffers, sealed_memory

#: bytes that are copied, cleared or unmapped on the event loop, in less than 0.1 ms, or hashed, in less than 1 ms; a
#: thread takes about as long to be woken, and everybody else on the loop waits meanwhile
BYTES_ON_LOOP: Final = 1 << 20
#: bytes of buffers that wait for the next body
_KEEP: Final = 64 << 20
#: bytes that a body claims at a time
CLAIM_STEP: Final = 1 << 20
#: what numbers of buffers begin with that bodies never have
_FIRST: Final = 1 << 32
#: a tensor of more bytes is seen by workers in one place; others, each has a copy of
COPIED: Final = 16 << 10


def offload(loop: asyncio.AbstractEventLoop, nbytes: int, work: Callable[[], object]) -> asyncio.Future[object] | None:
    """Do `work` on so many bytes: on a thread where they are many, and the future tells when it is done.

    None where it has been done already; what it raised then, this raises.
    """
    if nbytes <= BYTES_ON_LOOP:
        work()
        return None
    return loop.run_in_executor(None, work)


class BodyAllocation:
    """A body's place in a buffer."""

    __slots__ = ("_owner", "_refusal", "buffer", "claim", "still_referenced", "view", "written")

    def __init__(self, owner: BodyMemory, buffer: SharedBuffer, nbytes: int, claim: Claim) -> None:
        self._owner = owner
        self._refusal: Refusal | None = None
        self.buffer: SharedBuffer | None = buffer
        self.view = memoryview(buffer.memory)[:nbytes]
        self.claim = claim
        claim.holder = self
        #: bytes that may have been, at most
        self.written = 0
        #: whether a worker still looks at it
        self.still_referenced = False

    def reserve(self, nbytes: int) -> int:
        """Claim the first so many bytes, to write them; returns how many may be. Raises Refusal (queue_full)."""
        if self._refusal is not None:
            raise self._refusal
        if nbytes > self.written:
            step = min(len(self.view), -(-nbytes // CLAIM_STEP) * CLAIM_STEP)
            self.claim.grow(step - self.written)
            self.written = step
        return self.written

    def pin(self) -> None:
        """Keep the body from being taken back: somebody looks at it."""
        self.claim.holder = None

    def shrink(self, nbytes: int) -> None:
        """Claim no more than the body has."""
        self.claim.shrink(self.claim.held - nbytes)

    @property
    def revocable(self) -> bool:
        """Whether it can be taken back: nobody looks at it yet."""
        return self.buffer is not None

    def revoke(self, refusal: Refusal) -> None:
        """Take it back; this is the answer to whoever goes on writing."""
        self._refusal = refusal
        self.give_back()

    def give_back(self) -> None:
        """Let the memory serve another request. May be called twice."""
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            self.view = memoryview(b"")
            self.claim.end()
            self._owner.take_back(buffer, self.written, still_referenced=self.still_referenced)


class BodyMemory:
    """Allocator of memory for bodies."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_freed: Callable[[int], None]) -> None:
        """`on_freed` is told the number of a buffer that nobody gets again."""
        self._loop = loop
        self._on_freed = on_freed
        #: those that wait for their next body among them
        self.buffers = SharedBuffers(_KEEP, self._dropped)

    def allocate(self, nbytes: int, claim: Claim) -> BodyAllocation:
        """Memory for a body of so many bytes; it is taken up, and claimed, as they come."""
        return BodyAllocation(self, self.buffers.acquire(max(1, nbytes)), nbytes, claim)

    def take_back(self, buffer: SharedBuffer, nbytes: int, *, still_referenced: bool) -> None:
        """Clear a buffer for the next body, or drop it; not on the event loop where that takes long."""
        buffer.used = nbytes
        if still_referenced or buffer.size > LARGEST:
            self._dropped(buffer)
        elif (clearing := offload(self._loop, nbytes, buffer.clear)) is None:
            self.buffers.put(buffer)
        else:
            clearing.add_done_callback(lambda _: self.buffers.put(buffer))

    def _dropped(self, buffer: SharedBuffer) -> None:
        self._on_freed(buffer.number)
        offload(self._loop, buffer.size, buffer.drop)


class HeapAllocation:
    """Memory of a tensor, as this process gives it."""

    buffer = None

    def __init__(self, nbytes: int) -> None:
        # Not a bytearray, which writes zeros: what is announced and never sent takes addresses, but no memory.
        self.view = memoryview(np.empty(nbytes, np.uint8).data)

    def give_back(self) -> None:
        """Let go of it."""
        self.view = memoryview(b"")


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
