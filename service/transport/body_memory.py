"""Memory that the front allocates: for bodies, which are claimed as they come, and for resident tensors.

A version of a tensor has memory of its own, in a buffer that workers can see if it is large. It is never written again,
nor used for another: whoever still reads it sees what was there, and it goes back to the system with the last reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from service.errors import Refusal
from service.transport.claims import Claim
from service.transport.offload import offload
from service.transport.shared_buffers import LARGEST, SharedBuffer, SharedBuffers

#: bytes of buffers that wait for the next body
_KEEP: Final = 64 << 20
#: bytes that a body claims at a time
CLAIM_STEP: Final = 1 << 20


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
        """Before the first so many bytes are written: how many may be. Raises Refusal (queue_full)."""
        if self._refusal is not None:
            raise self._refusal
        if nbytes > self.written:
            step = min(len(self.view), -(-nbytes // CLAIM_STEP) * CLAIM_STEP)
            self.claim.grow(step - self.written)
            self.written = step
        return self.written

    def pin(self) -> None:
        """Somebody looks at the body: it is not taken back."""
        self.claim.holder = None

    def shrink(self, nbytes: int) -> None:
        """The body is shorter than was claimed."""
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
        """The memory may serve another request. May be called twice."""
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
