"""Fairness between owners who share something bounded: whose turn it is, and who gives way.

An owner is any name that a caller of the engine gives; without one, all belongs to the same. Nothing is set aside for
anybody: one alone has everything. Turns are dealt by start-time fair queueing, and evictions take from the owner who
holds most.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

#: seconds after which what an owner has not used counts for nothing, and goes before anybody's
FORGOTTEN: Final = 600.0
#: owners of one thing at a time: whoever used it longest ago is none any more
MOST_OWNERS: Final = 16


class _Holding:
    """Holding of one owner: sizes by key, what was used longest ago first; their sum; and when it was used last."""

    __slots__ = ("size", "things", "used")

    def __init__(self) -> None:
        self.things: OrderedDict[Hashable, int] = OrderedDict()
        self.size = 0
        self.used = 0.0


class FairEviction:
    """Things by owner. What goes first is what the owner who holds most used longest ago.

    So nobody loses anything to an owner who holds no more than they do, and one alone is what a memory of the most
    recently used things is. A thing may have several owners, each of whom holds all of it: it goes once the last of
    them lets go. Not for several threads at a time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds."""
        self._clock = clock
        self._now = clock()  # when something was claimed or let go last: what is only used costs no look at a clock
        self._by_owner: dict[Hashable, _Holding] = {}
        self._owners: dict[Hashable, list[Hashable]] = {}

    def __len__(self) -> int:
        """Count the things."""
        return len(self._owners)

    def __contains__(self, key: Hashable) -> bool:
        """Whether anybody holds this."""
        return key in self._owners

    def has(self, owner: Hashable) -> bool:
        """Whether this owner holds anything."""
        return owner in self._by_owner

    def use(self, key: Hashable, owner: Hashable, size: int = 1) -> None:
        """An owner uses a thing, and so holds it."""
        holding = self._by_owner.get(owner)
        if holding is not None and holding.things.get(key) == size:
            holding.things.move_to_end(key)
            holding.used = self._now
        else:
            self._claim(key, owner, size)

    def drop(self, key: Hashable) -> None:
        """A thing is gone, for all."""
        for owner in self._owners.pop(key, ()):
            self._leave(key, owner)

    def let_go(self, *, by_size: bool = False) -> Hashable | None:
        """Evict from whoever holds the most things or the largest; None if others still hold that thing."""
        self._now = self._clock()
        owner = self._greatest(by_size=by_size)
        key = next(iter(self._by_owner[owner].things))
        others = self._owners[key]
        others.remove(owner)
        self._leave(key, owner)
        if others:
            return None
        del self._owners[key]
        return key

    def clear(self) -> None:
        """Nobody holds anything."""
        self._by_owner.clear()
        self._owners.clear()

    def _claim(self, key: Hashable, owner: Hashable, size: int) -> None:
        holding = self._by_owner.setdefault(owner, _Holding())
        if key not in holding.things:
            owners = self._owners.setdefault(key, [])
            owners.append(owner)
            if len(owners) > MOST_OWNERS:
                self._leave(key, owners.pop(0))
        holding.size += size - holding.things.get(key, 0)
        holding.things[key] = size
        holding.things.move_to_end(key)
        holding.used = self._now = self._clock()

    def _leave(self, key: Hashable, owner: Hashable) -> None:
        holding = self._by_owner[owner]
        holding.size -= holding.things.pop(key)
        if not holding.things:
            del self._by_owner[owner]

    def _greatest(self, *, by_size: bool) -> Hashable:
        """Return the owner who lets go: who has not used anything for long, or else holds most."""
        held = self._by_owner
        idle = min(held, key=lambda each: held[each].used)
        if held[idle].used < self._now - FORGOTTEN:
            return idle
        return max(held, key=lambda each: held[each].size if by_size else len(held[each].things))
