"""The bodies that the front receives: memory that workers can see, reserved within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from service.compute.slabs import LARGEST, Slab, Slabs

#: bytes of slabs that wait for the next body
_KEEP: Final = 64 << 20
#: what is cleared on the event loop: less than 0.1 ms
_AT_ONCE: Final = 1 << 20


class SlabRoom:
    """A body's place in a slab."""

    __slots__ = ("_rooms", "nbytes", "slab", "spoilt", "view")

    def __init__(self, rooms: Rooms, slab: Slab, nbytes: int) -> None:
        self._rooms = rooms
        self.slab: Slab | None = slab
        self.nbytes = nbytes
        self.view = memoryview(slab.memory)[:nbytes]
        #: whether a worker still looks at it
        self.spoilt = False

    def shrink(self, nbytes: int) -> None:
        """The body is shorter than was feared."""
        self._rooms.returned(self.nbytes - nbytes)
        self.nbytes = nbytes

    def give_back(self) -> None:
        """The memory may serve another request. May be called twice."""
        slab, self.slab = self.slab, None
        if slab is not None:
            self.view = memoryview(b"")
            self._rooms.take_back(slab, self.nbytes, spoilt=self.spoilt)


class Rooms:
    """Gives out room for bodies."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, returned: Callable[[int], None], dropped: Callable[[int], None]
    ) -> None:
        """`returned` is told of bytes that are free again, `dropped` the number of a slab that nobody gets again."""
        self._loop = loop
        self.returned = returned
        self._told = dropped
        self._slabs = Slabs(_KEEP, self._dropped)

    def room(self, nbytes: int) -> SlabRoom:
        """Memory for a body of so many bytes; it is taken up as they come."""
        return SlabRoom(self, self._slabs.take(max(1, nbytes)), nbytes)

    def take_back(self, slab: Slab, nbytes: int, *, spoilt: bool) -> None:
        """A room's slab: cleared for the next one, or dropped; what takes long is not done on the event loop."""
        self.returned(nbytes)
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
