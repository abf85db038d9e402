"""Fairness between owners who share something bounded: whose turn it is, and who gives way.

An owner is any name that a caller of the engine gives; without one, all belongs to the same. Nothing is set aside for
anybody: one alone has everything. Turns are dealt by start-time fair queueing, and evictions take from the owner who
holds most.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

#: seconds after which what an owner has not used counts for nothing, and goes before anybody's
FORGOTTEN: Final = 600.0
#: owners of one thing at a time: whoever used it longest ago is none any more
MOST_OWNERS: Final = 16
#: owners that are remembered, beside twice those who wait, before it is looked who can be forgotten
_FEW: Final = 64
_OWNER: Final[ContextVar[Hashable]] = ContextVar("owner", default=None)


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
        """Record that an owner uses a thing, and so holds it."""
        holding = self._by_owner.get(owner)
        if holding is not None and holding.things.get(key) == size:
            holding.things.move_to_end(key)
            holding.used = self._now
        else:
            self._claim(key, owner, size)

    def drop(self, key: Hashable) -> None:
        """Remove a thing from all owners."""
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
        """Remove all things."""
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


_Item = TypeVar("_Item")


class _Queue(Generic[_Item]):
    """Items that one owner waits for, and where its next one begins on the scale of what owners have had."""

    __slots__ = ("begins", "items")

    def __init__(self, begins: float) -> None:
        self.begins = begins
        self.items: deque[_Item] = deque()


class Turns(Generic[_Item]):
    """Items wait by owner, those of one in their order; next is an item of whoever has had least.

    This is start-time fair queueing (Goyal, Vin and Cheng, 1996), with costs that may be known only afterwards: an item
    begins where the one before it of its owner ended, or where service is now, whichever is later. So of two owners who
    both wait, neither gets ahead by more than one item of each; nobody saves up turns that were not taken; and one
    alone has them all. Not for several threads at a time.
    """

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue[_Item]] = {}
        self._now = 0.0
        #: items that wait
        self.count = 0
        self._sweep_at = _FEW

    def __iter__(self) -> Iterator[_Item]:
        """Iterate over all items, by owner."""
        return (item for queue in self._queues.values() for item in queue.items)

    def put(self, owner: Hashable, item: _Item) -> None:
        """Queue an item behind the others of its owner."""
        self._queue(owner).items.append(item)
        self.count += 1

    def put_back(self, owner: Hashable, item: _Item) -> None:
        """Queue an item before the others of its owner."""
        self._queue(owner).items.appendleft(item)
        self.count += 1

    def first(self, suits: Callable[[_Item], bool] | None = None) -> Hashable:
        """Return the owner whose turn it is, of those whose first item suits. Raises KeyError if there are none."""
        waiting = (
            (queue.begins, owner)
            for owner, queue in self._queues.items()
            if queue.items and (suits is None or suits(queue.items[0]))
        )
        earliest = min(waiting, key=lambda each: each[0], default=None)
        if earliest is None:
            raise KeyError("nobody waits")
        return earliest[1]

    def next_of(self, owner: Hashable) -> _Item:
        """Return the first item of an owner who waits."""
        return self._queues[owner].items[0]

    def take_next(self, owner: Hashable, cost: float = 0.0) -> _Item:
        """Remove and return the first item of this owner, and charge the cost at once."""
        queue = self._queues[owner]
        self._now = max(self._now, queue.begins)
        queue.begins += cost
        self.count -= 1
        item = queue.items.popleft()
        if len(self._queues) > self._sweep_at:
            self._sweep()
        return item

    def drop(self, owner: Hashable, item: _Item) -> None:
        """Remove an item that nobody wants any more. Raises ValueError if it does not wait."""
        self._queues[owner].items.remove(item)
        self.count -= 1

    def drop_last(self, owner: Hashable) -> _Item:
        """Remove and return the last item of an owner who waits."""
        self.count -= 1
        return self._queues[owner].items.pop()

    def charge(self, owner: Hashable, cost: float) -> None:
        """Charge an owner more, or less for a negative cost."""
        if queue := self._queues.get(owner):
            queue.begins += cost

    def of(self, owner: Hashable) -> int:
        """Count the items that an owner waits for."""
        queue = self._queues.get(owner)
        return 0 if queue is None else len(queue.items)

    def most(self) -> Hashable:
        """Return the owner who waits for the most items."""
        return max(self._queues, key=lambda owner: len(self._queues[owner].items))

    def lines(self) -> Iterator[tuple[Hashable, deque[_Item]]]:
        """Iterate over the owners who wait, with their items."""
        return ((owner, queue.items) for owner, queue in self._queues.items() if queue.items)

    def clear(self) -> list[_Item]:
        """Remove and return all items."""
        items = list(self)
        self._queues.clear()
        self.count = 0
        return items

    def _queue(self, owner: Hashable) -> _Queue[_Item]:
        queue = self._queues.get(owner)
        if queue is None:
            queue = self._queues[owner] = _Queue(self._now)
        elif not queue.items:
            queue.begins = max(queue.begins, self._now)
        return queue

    def _sweep(self) -> None:
        """Forget those who neither wait nor are ahead of others; where nobody waits, nobody is."""
        if not self.count:
            self._now = max(queue.begins for queue in self._queues.values())
        for owner, queue in tuple(self._queues.items()):
            if not queue.items and queue.begins <= self._now:
                del self._queues[owner]
        self._sweep_at = 2 * len(self._queues) + _FEW


def charge_to(owner: Hashable) -> None:
    """Charge what this thread keeps and compiles to this owner, until the next call."""
    if _OWNER.get() != owner:
        _OWNER.set(owner)


#: the owner that the work of this thread is charged to; None if none is set
current_owner: Final[Callable[[], Hashable]] = _OWNER.get
