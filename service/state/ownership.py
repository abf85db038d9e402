"""Ownership of a place, to write and to answer what is there: what a journal asks of it, whichever kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from service.state.items import Item
from service.state.journal import StateLost
from service.state.objects import Data
from service.state.packing import Contents
from service.state.reading import Reading


class Taken(Exception):
    """Another server, at the address `owner`, has just begun, in Unix seconds; it is to be asked."""

    def __init__(self, owner: str, began: float) -> None:
        super().__init__(owner, began)
        self.owner, self.began = owner, began


class Ownership(Protocol):
    """The right to make the next commit. All of it blocks; one thread writes, and another may look meanwhile."""

    next: int
    """The number of the next commit."""

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Take the place; the heads of all commits so far, by their numbers.

        Raises RuntimeError with one sentence, Taken, Vanished, OSError.
        """

    def settle(self) -> None:
        """Return when nobody else answers any more what was there before."""

    def write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Make the next commit, of these items. Raises StateLost, StateUnknown; upon OSError nothing was made."""

    def holds(self) -> bool:
        """Whether what this server knows is what there is, for as long as it need not look."""

    def look(self) -> None:
        """Find out that nobody else has written. Raises StateLost, OSError."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """What has to stay in place of a commit of which nothing is current; None where it may be deleted."""

    def give_up(self) -> None:
        """Try nothing again: what is in doubt stays so."""

    def end(self) -> None:
        """Leave the place to others. Nothing is answered any more."""


def loss(place: str) -> StateLost:
    """What is raised where another server has the place that messages call so."""
    return StateLost(f"another server writes to {place} now; this one has stopped writing there")
