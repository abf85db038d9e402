"""Memory for bytes that others write or read, and that somebody gives back."""

from __future__ import annotations

from typing import Protocol


class Held(Protocol):
    """Holder of memory. Whoever has it either gives that back or hands it on, and then the next one does."""

    def give_back(self) -> None:
        """The memory may serve another. Done twice, it is done once."""


class VisibleBuffer(Protocol):
    """Memory with a number that another process can be shown, by its descriptor."""

    number: int
    size: int
    fd: int


class Allocation(Held, Protocol):
    """Memory of so many bytes, whose view is empty once they are given back."""

    view: memoryview

    @property
    def buffer(self) -> VisibleBuffer | None:
        """Memory in which other processes see these bytes; None if they do not."""


class GrowingAllocation(Allocation, Protocol):
    """Memory for a body that is on its way, reserved step by step as it comes."""

    def reserve(self, nbytes: int) -> int:
        """Before the first so many bytes are written: how many may be, as many or more.

        Raises Refusal (queue_full) where there is no memory for them, also where what there was has been taken back.
        """

    def pin(self) -> None:
        """The body is all there, and is looked at from now on: it is not taken back any more."""
