"""Memory that is allocated, held, and given back: the interfaces by which the front and the store use it."""

from __future__ import annotations

from typing import Protocol


class Held(Protocol):
    """Holder of memory. Its owner either gives the memory back or hands the holder on."""

    def give_back(self) -> None:
        """Release the memory; a second call does nothing."""


class VisibleBuffer(Protocol):
    """Memory with a number, which another process can map by its descriptor."""

    number: int
    size: int
    fd: int


class Allocation(Held, Protocol):
    """Memory of a fixed size, whose view is empty once it is given back."""

    view: memoryview

    @property
    def buffer(self) -> VisibleBuffer | None:
        """The shared memory with these bytes; None if other processes do not see them."""


class GrowingAllocation(Allocation, Protocol):
    """Memory for a body, reserved step by step as the body arrives."""

    def reserve(self, nbytes: int) -> int:
        """Reserve the first `nbytes` bytes before they are written; return how many are reserved, at least as many.

        Raises Refusal (queue_full) if there is no memory for them, or the memory has been taken back.
        """

    def pin(self) -> None:
        """Keep the memory from being taken back: the body is complete, and is read from now on."""
