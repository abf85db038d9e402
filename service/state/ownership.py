"""Ownership of a place: the right to write the next commit, and to answer what is there.

`ExclusiveWriter` has a place alone, by a lock. `LeaseWriter` claims a place that other servers reach as well: one of
them writes and answers, whatever becomes of requests. There, commits are numbered without gaps, and a number is used
once: so what stands under one is decided for all, and a state is what the commits up to a number come to. All that
follows keeps to that.

- A server that begins makes an *opening*, a commit without items, under the next number. It counts once a list of what
  is behind it, asked for afterwards, is empty: until then the number may have been another's, whose commit is deleted.
  Whoever wrote here before meets it under the number that would be its next.
- A write of which no answer came is in *doubt*. The same object is sent again, with its number and its token, until
  it is known whether it is there, or another's. It is never taken back: somebody may have read it.
- A number is never free again where its writer could still come back to it. Openings stay, and so does the last
  commit. What stands right before an opening may have been made by a server that does not know it yet; and what was
  sent more than once may arrive once more. Of these, the number and the token stay.
- What is in memory is what there is for as long as nobody else has written. That is seen by a *look*: the next number
  is free. It holds for a lease; a commit of ours that succeeded is as good. A server that begins answers nothing until
  the leases of those before it are over, unless the last of them has said that it released the place.
"""

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
        """Return whether what this server knows is known to be current without a look."""

    def look(self) -> None:
        """Find out that nobody else has written. Raises StateLost, OSError."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Return what has to stay in place of a commit of which nothing is current; None if it may be deleted."""

    def give_up(self) -> None:
        """Try nothing again: what is in doubt stays so."""

    def end(self) -> None:
        """Leave the place to others. Nothing is answered any more."""


def loss(place: str) -> StateLost:
    """Return the error that another server has the place, which messages call `place`."""
    return StateLost(f"another server writes to {place} now; this one has stopped writing there")
