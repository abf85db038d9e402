"""The bodies that the front receives: memory that workers can see, claimed as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from service.errors import Refusal
from service.transport.claims import Claim
from service.transport.slabs import LARGEST, Slab, Slabs

#: bytes of slabs that wait for the next body
_KEEP: Final = 64 << 20
#: bytes that a body claims at a time
ROOM_STEP: Final = 1 << 20
#: what is cleared on the event loop: less than 0.1 ms
_AT_ONCE: Final = 1 << 20


class SlabRoom:
    """A body's place in a slab."""

    __slots__ = ("_refusal", "_rooms", "claim", "slab", "spoilt", "view", "written")

    def __init__(self, rooms: Rooms, slab: Slab, nbytes: int, claim: Claim) -> None:
        self._rooms = rooms
        self._refusal: Refusal | None = None
        self.slab: Slab | None = slab
        self.view = memoryview(slab.memory)[:nbytes]
        self.claim = claim
        claim.holder = self
        #: bytes that may have been, at most
        self.written = 0
        #: whether a worker still looks at it
        self.spoilt = False

    def reserve(self, nbytes: int) -> int:
        """Before the first so many bytes are written: how many may be. Raises Refusal (queue_full)."""
        if self._refusal is not None:
            raise self._refusal
        if nbytes > self.written:
            step = min(len(self.view), -(-nbytes // ROOM_STEP) * ROOM_STEP)
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
        return self.slab is not None

    def revoke(self, refusal: Refusal) -> None:
        """Take it back; this is the answer to whoever goes on writing."""
        self._refusal = refusal
        self.give_back()

    def give_back(self) -> None:
        """The memory may serve another request. May be called twice."""
        slab, self.slab = self.slab, None
        if slab is not None:
            self.view = memoryview(b"")
            self.claim.end()
            self._rooms.take_back(slab, self.written, spoilt=self.spoilt)


class Rooms:
    """Gives out room for bodies."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dropped: Callable[[int], None]) -> None:
        """`dropped` is told the number of a slab that nobody gets again."""
        self._loop = loop
        self._told = dropped
        self._slabs = Slabs(_KEEP, self._dropped)

    def room(self, nbytes: int, claim: Claim) -> SlabRoom:
        """Memory for a body of so many bytes; it is taken up, and claimed, as they come."""
        return SlabRoom(self, self._slabs.take(max(1, nbytes)), nbytes, claim)

    def take_back(self, slab: Slab, nbytes: int, *, spoilt: bool) -> None:
        """A room's slab: cleared for the next one, or dropped; what takes long is not done on the event loop."""
        slab.used = nbytes
        if spoilt or slab.size > LARGEST:
            self._dropped(slab)
        elif nbytes <= _AT_ONCE:
            slab.clear()
            self._slabs.put(slab)
        else:
            self._loop.run_in_executor(None, slab.clear).add_done_callback(lambda _: self._slabs.put(slab))

    def trim(self) -> None:
        """Give memory back to the system that nobody used for a while."""
        self._slabs.trim()

    def close(self) -> None:
        """Drop what waits for its next use."""
        self._slabs.close()

    def _dropped(self, slab: Slab) -> None:
        self._told(slab.number)
        if slab.size > _AT_ONCE:
            self._loop.run_in_executor(None, slab.drop)
        else:
            slab.drop()
