"""Turns: whose item is next, by what each owner has had."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

_Item = TypeVar("_Item")
#: owners that are remembered, beside twice those who wait, before it is looked who can be forgotten
_FEW: Final = 64


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
        """An item that waits behind the others of its owner."""
        self._queue(owner).items.append(item)
        self.count += 1

    def put_back(self, owner: Hashable, item: _Item) -> None:
        """An item that waits before the others of its owner."""
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
        """The first item of an owner who waits."""
        return self._queues[owner].items[0]

    def take_next(self, owner: Hashable, cost: float = 0.0) -> _Item:
        """The first item of this owner, who is charged so much at once."""
        queue = self._queues[owner]
        self._now = max(self._now, queue.begins)
        queue.begins += cost
        self.count -= 1
        item = queue.items.popleft()
        if len(self._queues) > self._sweep_at:
            self._sweep()
        return item

    def drop(self, owner: Hashable, item: _Item) -> None:
        """An item that nobody wants any more. Raises ValueError where it does not wait."""
        self._queues[owner].items.remove(item)
        self.count -= 1

    def drop_last(self, owner: Hashable) -> _Item:
        """The last item of an owner who waits, which gives way."""
        self.count -= 1
        return self._queues[owner].items.pop()

    def charge(self, owner: Hashable, cost: float) -> None:
        """Charge an owner so much more than before, or less."""
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
        """The owners who wait, and what for."""
        return ((owner, queue.items) for owner, queue in self._queues.items() if queue.items)

    def clear(self) -> list[_Item]:
        """Nothing waits any more; what did."""
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
