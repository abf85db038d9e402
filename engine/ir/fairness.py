"""Fairness between owners who share a bounded resource: whose turn is next, and whose entries are evicted.

An owner is any hashable name that a caller of the engine sets; without one, everything has the same owner. Nothing is
reserved: a single owner can use everything. Turns follow start-time fair queueing, and evictions take from the owner
who holds most.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

#: seconds of inactivity after which an owner's entries are evicted first
FORGOTTEN: Final = 600.0
#: maximum number of owners of one entry; beyond it, the owner who claimed the entry first loses it
MOST_OWNERS: Final = 16
#: minimum number of queues that are created between two sweeps for idle owners
_SWEEP_MARGIN: Final = 64
_OWNER: Final[ContextVar[Hashable]] = ContextVar("owner", default=None)


class _Holding:
    """Entries of one owner: sizes by key, least recently used first; their sum; and the time of the last use."""

    __slots__ = ("size", "things", "used")

    def __init__(self) -> None:
        self.things: OrderedDict[Hashable, int] = OrderedDict()
        self.size = 0
        self.used = 0.0


class FairEviction:
    """Entries by owner. Evicts the least recently used entry of the owner who holds most.

    So an owner never loses an entry to one who holds less, and for a single owner this is an LRU cache. An entry may
    have several owners, each of whom is charged all of it; it is evicted when the last of them loses it. Not
    thread-safe.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty. `clock` returns seconds."""
        self._clock = clock
        self._now = clock()  # time of the last claim or eviction: a mere use does not read the clock
        self._by_owner: dict[Hashable, _Holding] = {}
        self._owners: dict[Hashable, list[Hashable]] = {}

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._owners)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether anybody holds this entry."""
        return key in self._owners

    def has(self, owner: Hashable) -> bool:
        """Return whether this owner holds anything."""
        return owner in self._by_owner

    def use(self, key: Hashable, owner: Hashable, size: int = 1) -> None:
        """Record that an owner uses an entry, and therefore holds it."""
        holding = self._by_owner.get(owner)
        if holding is not None and holding.things.get(key) == size:
            holding.things.move_to_end(key)
            holding.used = self._now
        else:
            self._claim(key, owner, size)

    def drop(self, key: Hashable) -> None:
        """Remove an entry from all owners."""
        for owner in self._owners.pop(key, ()):
            self._remove_owner(key, owner)

    def evict(self, *, by_size: bool = False) -> Hashable | None:
        """Evict an entry of the owner who holds the most entries, or bytes.

        Returns its key, or None if other owners remain.
        """
        self._now = self._clock()
        owner = self._owner_to_evict(by_size=by_size)
        key = next(iter(self._by_owner[owner].things))
        others = self._owners[key]
        others.remove(owner)
        self._remove_owner(key, owner)
        if others:
            return None
        del self._owners[key]
        return key

    def clear(self) -> None:
        """Remove all entries."""
        self._by_owner.clear()
        self._owners.clear()

    def _claim(self, key: Hashable, owner: Hashable, size: int) -> None:
        holding = self._by_owner.setdefault(owner, _Holding())
        if key not in holding.things:
            owners = self._owners.setdefault(key, [])
            owners.append(owner)
            if len(owners) > MOST_OWNERS:
                self._remove_owner(key, owners.pop(0))
        holding.size += size - holding.things.get(key, 0)
        holding.things[key] = size
        holding.things.move_to_end(key)
        holding.used = self._now = self._clock()

    def _remove_owner(self, key: Hashable, owner: Hashable) -> None:
        holding = self._by_owner[owner]
        holding.size -= holding.things.pop(key)
        if not holding.things:
            del self._by_owner[owner]

    def _owner_to_evict(self, *, by_size: bool) -> Hashable:
        """Return an owner who has been idle for long, or else the one who holds most."""
        holdings = self._by_owner
        longest_idle = min(holdings, key=lambda owner: holdings[owner].used)
        if holdings[longest_idle].used < self._now - FORGOTTEN:
            return longest_idle
        return max(holdings, key=lambda owner: holdings[owner].size if by_size else len(holdings[owner].things))


_Item = TypeVar("_Item")


class _Queue(Generic[_Item]):
    """Waiting items of one owner, and the virtual start time of the next one."""

    __slots__ = ("begins", "items")

    def __init__(self, begins: float) -> None:
        self.begins = begins
        self.items: deque[_Item] = deque()


class Turns(Generic[_Item]):
    """Queue of items by owner, in order for each owner; the next item is from the owner who has received least service.

    This is start-time fair queueing (Goyal, Vin and Cheng, 1996), with costs that may be known only afterwards. An
    item's virtual start time is the end of its owner's previous item or the current virtual time, whichever is later.
    So of two waiting owners, neither gets ahead by more than one item of each; unused turns cannot be saved up; and a
    single owner gets all turns. Not thread-safe.
    """

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue[_Item]] = {}
        self._now = 0.0
        #: number of waiting items
        self.count = 0
        self._sweep_at = _SWEEP_MARGIN

    def __iter__(self) -> Iterator[_Item]:
        """Iterate over all items, by owner."""
        return (item for queue in self._queues.values() for item in queue.items)

    def put(self, owner: Hashable, item: _Item) -> None:
        """Append an item to its owner's queue."""
        self._queue(owner).items.append(item)
        self.count += 1

    def put_back(self, owner: Hashable, item: _Item) -> None:
        """Return an item to the head of its owner's queue."""
        self._queue(owner).items.appendleft(item)
        self.count += 1

    def first(self, suits: Callable[[_Item], bool] | None = None) -> Hashable:
        """Return the owner whose turn it is, among those whose first item suits. Raises KeyError if there is none."""
        waiting = (
            (queue.begins, owner)
            for owner, queue in self._queues.items()
            if queue.items and (suits is None or suits(queue.items[0]))
        )
        earliest = min(waiting, key=lambda candidate: candidate[0], default=None)
        if earliest is None:
            raise KeyError("nobody waits")
        return earliest[1]

    def peek(self, owner: Hashable) -> _Item:
        """Return the first item of a waiting owner."""
        return self._queues[owner].items[0]

    def take_next(self, owner: Hashable, cost: float = 0.0) -> _Item:
        """Remove and return an owner's first item, and charge its cost immediately."""
        queue = self._queues[owner]
        self._now = max(self._now, queue.begins)
        queue.begins += cost
        self.count -= 1
        item = queue.items.popleft()
        if len(self._queues) > self._sweep_at:
            self._sweep()
        return item

    def drop(self, owner: Hashable, item: _Item) -> None:
        """Remove an item that is no longer needed. Raises ValueError if it is not waiting."""
        self._queues[owner].items.remove(item)
        self.count -= 1

    def drop_last(self, owner: Hashable) -> _Item:
        """Remove and return the last item of a waiting owner."""
        self.count -= 1
        return self._queues[owner].items.pop()

    def charge(self, owner: Hashable, cost: float) -> None:
        """Charge an owner additional cost, or refund a negative one."""
        if queue := self._queues.get(owner):
            queue.begins += cost

    def count_of(self, owner: Hashable) -> int:
        """Return the number of items that an owner waits for."""
        queue = self._queues.get(owner)
        return 0 if queue is None else len(queue.items)

    def longest_queue(self) -> Hashable:
        """Return the owner with the most waiting items."""
        return max(self._queues, key=lambda owner: len(self._queues[owner].items))

    def lines(self) -> Iterator[tuple[Hashable, deque[_Item]]]:
        """Iterate over the waiting owners and their items."""
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
        """Remove queues of owners who neither wait nor are ahead of the virtual time; if nobody waits, all of them."""
        if not self.count:
            self._now = max(queue.begins for queue in self._queues.values())
        for owner, queue in tuple(self._queues.items()):
            if not queue.items and queue.begins <= self._now:
                del self._queues[owner]
        self._sweep_at = 2 * len(self._queues) + _SWEEP_MARGIN


def charge_to(owner: Hashable) -> None:
    """Charge what this thread caches and compiles to `owner`, until the next call."""
    if _OWNER.get() != owner:
        _OWNER.set(owner)


#: returns the owner that this thread's work is charged to; None if none is set
current_owner: Final[Callable[[], Hashable]] = _OWNER.get
