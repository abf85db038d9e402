"""Memory that the front allocates: for bodies, claimed as they arrive, and for resident tensors.

Each version of a tensor has memory of its own; if it is large, in a buffer that workers can map. It is written once
and never reused: a reader keeps seeing the same elements, and the last reader returns the memory to the system.
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

#: most bytes that are copied, cleared or unmapped (under 0.1 ms) or hashed (under 1 ms) on the event loop; beyond that
#: a thread does it, which takes about as long to be woken
BYTES_ON_LOOP: Final = 1 << 20
#: most bytes of idle buffers that are kept for the next bodies
_IDLE_BYTES: Final = 64 << 20
#: bytes that a body claims at a time
CLAIM_STEP: Final = 1 << 20
#: first number of the buffers of tensors; those of bodies are always lower
_FIRST_NUMBER: Final = 1 << 32
#: size above which workers map a tensor; smaller ones are copied to each worker
COPIED: Final = 16 << 10


def offload(loop: asyncio.AbstractEventLoop, nbytes: int, work: Callable[[], object]) -> asyncio.Future[object] | None:
    """Run `work`, which handles `nbytes`; if they are many, run it on a thread and return a future.

    Return None if it is done already. Then an exception of `work` is raised here.
    """
    if nbytes <= BYTES_ON_LOOP:
        work()
        return None
    return loop.run_in_executor(None, work)


class BodyAllocation:
    """Memory of one body, in a buffer."""

    __slots__ = ("_owner", "_refusal", "buffer", "claim", "still_referenced", "view", "written")

    def __init__(self, owner: BodyMemory, buffer: SharedBuffer, nbytes: int, claim: Claim) -> None:
        self._owner = owner
        self._refusal: Refusal | None = None
        self.buffer: SharedBuffer | None = buffer
        self.view = memoryview(buffer.memory)[:nbytes]
        self.claim = claim
        claim.holder = self
        #: most bytes that may have been written
        self.written = 0
        #: whether a worker still has a view of it
        self.still_referenced = False

    def reserve(self, nbytes: int) -> int:
        """Claim the first `nbytes` before they are written; return the bytes claimed. Raises Refusal (queue_full)."""
        if self._refusal is not None:
            raise self._refusal
        if nbytes > self.written:
            # In steps of a MiB: a body arrives in many small chunks.
            step = min(len(self.view), -(-nbytes // CLAIM_STEP) * CLAIM_STEP)
            self.claim.grow(step - self.written)
            self.written = step
        return self.written

    def pin(self) -> None:
        """Protect the body from being revoked: somebody reads it."""
        self.claim.holder = None

    def shrink(self, nbytes: int) -> None:
        """Reduce the claim to the size of the body."""
        self.claim.shrink(self.claim.held - nbytes)

    @property
    def revocable(self) -> bool:
        """Whether it can be revoked: nobody reads it yet."""
        return self.buffer is not None

    def revoke(self, refusal: Refusal) -> None:
        """Release the memory; the writer of the body gets this refusal."""
        self._refusal = refusal
        self.release()

    def release(self) -> None:
        """Release the buffer for another body. May be called twice."""
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            # A late writer gets an error, and never touches the next request's memory.
            self.view = memoryview(b"")
            self.claim.end()
            self._owner.take_back(buffer, self.written, still_referenced=self.still_referenced)


class BodyMemory:
    """Allocator of memory for bodies."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_freed: Callable[[int], None]) -> None:
        """Make an empty pool of buffers; `on_freed` is called with the number of a buffer that is dropped."""
        self._loop = loop
        self._on_freed = on_freed
        #: also holds the buffers that wait for their next body
        self.buffers = SharedBuffers(_IDLE_BYTES, self._dropped)

    def allocate(self, nbytes: int, claim: Claim) -> BodyAllocation:
        """Allocate memory for a body of `nbytes`; it is claimed as the body arrives."""
        return BodyAllocation(self, self.buffers.acquire(max(1, nbytes)), nbytes, claim)

    def take_back(self, buffer: SharedBuffer, nbytes: int, *, still_referenced: bool) -> None:
        """Clear a buffer for the next body, or drop it; on a thread if that takes long."""
        buffer.used = nbytes
        if still_referenced or buffer.size > LARGEST:
            # A view in a worker may outlive the body, so this buffer cannot serve another caller.
            self._dropped(buffer)
        elif (clearing := offload(self._loop, nbytes, buffer.clear)) is None:
            self.buffers.put(buffer)
        else:
            clearing.add_done_callback(lambda _: self.buffers.put(buffer))

    def _dropped(self, buffer: SharedBuffer) -> None:
        self._on_freed(buffer.number)
        offload(self._loop, buffer.size, buffer.drop)


class HeapAllocation:
    """Memory of a small tensor, in this process only."""

    buffer = None

    def __init__(self, nbytes: int) -> None:
        # Not a bytearray, which writes zeros: a body that is announced and never sent takes addresses, but no memory.
        self.view = memoryview(np.empty(nbytes, np.uint8).data)

    def release(self) -> None:
        """Release the memory."""
        self.view = memoryview(b"")


class TensorAllocation:
    """Memory of one version in a buffer of its own."""

    __slots__ = ("_loop", "buffer", "view")

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: SharedBuffer, nbytes: int) -> None:
        self._loop = loop
        self.buffer: SharedBuffer | None = buffer
        self.view = memoryview(buffer.memory)[:nbytes]

    def release(self) -> None:
        """Release the memory. May be called twice."""
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            self.view = memoryview(b"")
            offload(self._loop, buffer.size, buffer.drop)


class TensorMemory:
    """Allocator of memory for tensors: in a buffer if it is large, else in this process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._numbers = count(_FIRST_NUMBER)

    def allocate(self, nbytes: int) -> TensorAllocation | HeapAllocation:
        """Allocate `nbytes`. Raises Refusal (store_full) if the system has none."""
        if nbytes <= COPIED:
            return HeapAllocation(nbytes)
        try:
            buffer = SharedBuffer(next(self._numbers), nbytes, sealed_memory("gradserve-tensor", nbytes))
        except OSError as error:
            detail = f"the system has no memory for a resident tensor of {nbytes} bytes: {error.strerror}"
            raise Refusal("store_full", detail, got=f"{nbytes} bytes") from None
        return TensorAllocation(self._loop, buffer, nbytes)
