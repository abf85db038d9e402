"""Ledger of objects: which hold what is current, what may be deleted, and what is worth moving together.

An item is current until a later one has its key, or its time is over. An object of which nothing is current is dead
and can be deleted in any order with others: what it said is said by none. One care is taken: the end of a key stays
current for as long as an object that holds a value of this key is still there, or the value would come back.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from service.state.items import Item, ItemKey

#: what an object costs beside its bytes, about: a block, an entry of the folder, a look when the state is loaded
_OBJECT_COST: Final = 4096
#: what an item takes beside its bytes, about: its row in the head
_ITEM_COST: Final = 512
#: how often as much as is deleted at all may be dead before writers wait
_CROWDED: Final = 16


@dataclass(frozen=True, slots=True)
class Tidiness:
    """Amount that may lie about before something is done about it."""

    #: dead objects, and their bytes, upon which they are deleted
    dead_objects: int = 64
    dead_bytes: int = 16 << 20
    #: bytes that are not current in objects that hold something else that is, upon which that is moved; or as many as
    #: are current, where that is more
    worn_bytes: int = 64 << 20
    #: objects of less than `small_bytes`, upon which what they hold is moved together
    small_objects: int = 2048
    small_bytes: int = 64 << 10


@dataclass(slots=True)
class _Object:
    nbytes: int
    keys: tuple[ItemKey, ...]
    current: int = 0  # items
    current_bytes: int = 0


class Ledger:
    """The objects of a journal by their numbers, and what is current of them."""

    def __init__(self, tidiness: Tidiness) -> None:
        self._tidiness = tidiness
        self._objects: dict[int, _Object] = {}
        self._current: dict[ItemKey, tuple[int, Item]] = {}
        self._holders: defaultdict[ItemKey, set[int]] = defaultdict(set)  # objects that hold a value, current or not
        self._dead: dict[int, None] = {}  # in the order in which they died
        self._expiring: list[tuple[float, ItemKey]] = []
        self._bytes = self._current_bytes = self._dead_bytes = self._small = 0

    def note(self, sequence: int, nbytes: int, items: Sequence[Item]) -> None:
        """An object has been written, of so many bytes: what it says is said from now on."""
        cost = nbytes + _OBJECT_COST
        self._objects[sequence] = _Object(cost, tuple(item.key for item in items))
        self._bytes += cost
        self._small += self._is_small(self._objects[sequence])
        for item in items:
            if item.key in self._current:
                self._release(item.key)
            self._enter(sequence, item)
        if not self._objects[sequence].current:
            self._bury(sequence)

    def expire(self, now: float) -> None:
        """Release what has expired by `now`, in Unix seconds."""
        while self._expiring and self._expiring[0][0] <= now:
            _, key = heapq.heappop(self._expiring)
            known = self._current.get(key)
            if known and known[1].expires is not None and known[1].expires <= now:
                self._release(key)

    def current(self) -> list[tuple[int, Item]]:
        """The values that there are, each with the number of its object."""
        return [(sequence, item) for sequence, item in self._current.values() if item.nbytes is not None]

    def holds(self, sequence: int, item: Item) -> bool:
        """Return whether this item of this object is current."""
        return self._current.get(item.key) == (sequence, item)

    def dead(self) -> list[int]:
        """The objects that may be deleted, in any order."""
        return list(self._dead)

    def gone(self, sequences: Iterable[int]) -> None:
        """These dead objects are deleted, and will not be there after a crash."""
        for sequence in sequences:
            if sequence in self._dead:
                del self._dead[sequence]
                self._forget(self._objects.pop(sequence), sequence)

    def is_untidy(self) -> bool:
        """Return whether there is enough to delete or to move to be worth it."""
        limits = self._tidiness
        many = len(self._dead) >= limits.dead_objects or self._dead_bytes >= limits.dead_bytes
        return many or self._is_worn() or self._is_scattered()

    def is_crowded(self) -> bool:
        """Return whether so much is dead that it had better not become more."""
        limits = self._tidiness
        return len(self._dead) >= _CROWDED * limits.dead_objects or self._dead_bytes >= _CROWDED * limits.dead_bytes

    def worth_moving(self) -> list[tuple[int, Item]]:
        """The current items of objects that are to be emptied, the emptiest objects first; none where it is tidy."""
        chosen = dict.fromkeys(self._worn() if self._is_worn() else ())
        if self._is_scattered():
            alive = ((n, held) for n, held in self._objects.items() if held.current)
            chosen |= dict.fromkeys(n for n, held in alive if self._is_small(held))
        return [known for sequence in chosen for known in self._held_by(sequence)]

    def _enter(self, sequence: int, item: Item) -> None:
        holder = self._objects[sequence]
        if item.nbytes is not None:
            self._holders[item.key].add(sequence)
        elif item.key not in self._holders:
            return  # the end of what is nowhere
        self._current[item.key] = sequence, item
        holder.current += 1
        holder.current_bytes += _cost(item)
        self._current_bytes += _cost(item)
        if item.expires is not None:
            heapq.heappush(self._expiring, (item.expires, item.key))

    def _release(self, key: ItemKey) -> None:
        sequence, item = self._current.pop(key)
        holder = self._objects[sequence]
        holder.current -= 1
        holder.current_bytes -= _cost(item)
        self._current_bytes -= _cost(item)
        if not holder.current:
            self._bury(sequence)

    def _bury(self, sequence: int) -> None:
        self._dead[sequence] = None
        self._dead_bytes += self._objects[sequence].nbytes
        self._small -= self._is_small(self._objects[sequence])

    def _forget(self, dead: _Object, sequence: int) -> None:
        self._bytes -= dead.nbytes
        self._dead_bytes -= dead.nbytes
        for key in dead.keys:
            holders = self._holders.get(key)
            if holders is None:
                continue
            holders.discard(sequence)
            if not holders:
                del self._holders[key]
                if key in self._current:  # its end, which is not needed any more
                    self._release(key)

    def _is_worn(self) -> bool:
        waste = self._bytes - self._dead_bytes - self._current_bytes
        waste -= _OBJECT_COST * (len(self._objects) - len(self._dead))
        return waste > max(self._tidiness.worn_bytes, self._current_bytes)

    def _is_scattered(self) -> bool:
        return self._small > self._tidiness.small_objects

    def _is_small(self, held: _Object) -> bool:
        return held.nbytes < self._tidiness.small_bytes + _OBJECT_COST

    def _worn(self) -> list[int]:
        """Objects that are less than half current, the emptiest first."""
        alive = ((held.current_bytes / held.nbytes, n) for n, held in self._objects.items() if held.current)
        return [sequence for share, sequence in sorted(alive) if share < 1 / 2]

    def _held_by(self, sequence: int) -> list[tuple[int, Item]]:
        known = (self._current.get(key) for key in self._objects[sequence].keys)
        return [found for found in known if found and found[0] == sequence]


def _cost(item: Item) -> int:
    return (item.nbytes or 0) + _ITEM_COST
