"""Memory for bytes that others write or read, and that somebody gives back."""

from __future__ import annotations

from typing import Protocol


class Allocation(Protocol):
    """So many bytes. Whoever has it either gives it back or hands it on, and then the next one does."""

    view: memoryview

    def give_back(self) -> None:
        """The memory may serve another, and the view is empty from now on. Done twice, it is done once."""


class GrowingAllocation(Allocation, Protocol):
    """Memory for a body that is on its way, reserved step by step as it comes."""

    def reserve(self, nbytes: int) -> int:
        """Before the first so many bytes are written: how many may be, as many or more.

        Raises Refusal (queue_full) where there is no room for them, also where what there was has been taken back.
        """

    def pin(self) -> None:
        """The body is all there, and is looked at from now on: it is not taken back any more."""
