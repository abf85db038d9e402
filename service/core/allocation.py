"""Protocols for memory that is allocated, held and given back; the front and the store depend on them."""

from __future__ import annotations

from typing import Protocol


class MemoryHolder(Protocol):
    """Holder of memory. Its owner either releases the memory or passes the holder on."""

    def release(self) -> None:
        """Release the memory; a second call does nothing."""


class VisibleBuffer(Protocol):
    """Numbered memory that another process can map by its file descriptor."""

    number: int
    size: int
    fd: int


class Allocation(MemoryHolder, Protocol):
    """Memory of a fixed size. Its view is empty after it is given back."""

    view: memoryview

    @property
    def buffer(self) -> VisibleBuffer | None:
        """The shared memory that has these bytes; None if other processes cannot see them."""


class GrowingAllocation(Allocation, Protocol):
    """Memory for a body, reserved step by step while the body arrives."""

    def reserve(self, nbytes: int) -> int:
        """Reserve the first `nbytes` bytes before they are written; return the number reserved, at least `nbytes`.

        Raises Refusal (queue_full) if there is not enough memory, or if the memory has been reclaimed.
        """

    def pin(self) -> None:
        """Protect the memory from being reclaimed: the body is complete and will be read."""
