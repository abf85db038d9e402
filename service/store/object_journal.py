"""A journal of objects: each batch of commits is one, with the next number, made where nothing is yet.

Who may make it is decided by an owner of the place: by a lock (`ExclusiveWriter`), or, where several servers reach the
objects, by these themselves (`LeaseWriter`). The `Ledger` knows which items are current, and in which objects. What is
not current any more is deleted by a thread, and what is current of old objects is moved together by it, in commits like
others; the last object is never deleted, so that no number comes twice. A crash at any point leaves objects that say
the same.
"""

from __future__ import annotations

import errno
import heapq
import logging
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from service.store.commit_objects import (
    Damaged,
    Item,
    ItemKey,
    Reading,
    Vanished,
    commit_key,
    items_of,
    loaded,
    read_item,
)
from service.store.journal import SYSTEM, Loaded, StateFull, StateLost, StateUnknown, Surroundings
from service.store.objects import Missing, Objects
from service.store.ownership import ExclusiveWriter, LeaseWriter, Ownership
from service.store.writes import Commit

# Holds: while there is one, a server deletes nothing, so that a backup finds what it has listed.
#
# A hold is an object whose key says until when it is good, in Unix seconds: one whose backup was killed ends by itself.
# A server that runs out of space drops them all, and then the backup fails.

HOLDS: Final = "holds/"
_HOLD: Final = re.compile(rf"{HOLDS}([0-9]{{1,18}})\.[0-9a-f]+")


def put_hold(objects: Objects, seconds: float) -> str:
    """Ask a server to delete nothing for so many seconds; the key of the hold."""
    key = f"{HOLDS}{int(time.time() + seconds)}.{secrets.token_hex(8)}"
    objects.put(key, [])  # nothing in it: a full disk takes it too
    return key


def is_held(objects: Objects) -> bool:
    """Return whether nothing is to be deleted now. Holds that are over are removed."""
    holds = list(objects.list(HOLDS))
    over = [key for key in holds if _until(key) < time.time()]
    if over:
        objects.delete(over)
    return len(holds) > len(over)


def drop_holds(objects: Objects) -> None:
    """Delete in spite of all holds from now on."""
    objects.delete(list(objects.list(HOLDS)))


def _until(key: str) -> int:
    found = _HOLD.fullmatch(key)
    return int(found[1]) if found else 0


# Ledger of objects: which hold what is current, what may be deleted, and what is worth moving together.
#
# An item is current until a later one has its key, or its time is over. An object of which nothing is current is dead
# and can be deleted in any order with others: what it said is said by none. One care is taken: the end of a key stays
# current for as long as an object that holds a value of this key is still there, or the value would come back.

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


_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
#: how often a state is read from the beginning, where commits vanish meanwhile
_BEGINNINGS: Final = 100
#: objects that are deleted at once: a server that ends waits for no more
_DELETED: Final = 100
#: what one object gets of what is moved: commits wait while it is written
_MOVED_BYTES: Final = 8 << 20
_MOVED_ITEMS: Final = 2048

_logger = logging.getLogger("gradserve.state")


class ObjectJournal:
    """Commits as objects of one place, which messages call `place`."""

    def __init__(
        self,
        objects: Objects,
        place: str,
        tidiness: Tidiness | None = None,
        lease: float = 0.0,
        around: Surroundings = SYSTEM,
        owner: str | None = None,
    ) -> None:
        """`lease`: seconds for which a look at a place that others reach is good enough; 0: each answer needs one.

        `owner`: where others ask whoever has the place, the address at which they do.
        """
        self._objects, self._place, self._around = objects, place, around
        self.shared = not objects.exclusive
        self._claim: Ownership = (
            LeaseWriter(objects, place, lease, around, owner) if self.shared else ExclusiveWriter(objects, place)
        )
        self._tidiness = tidiness or Tidiness()
        self._ledger = Ledger(self._tidiness)
        self._lock = around.lock()  # over the ledger and the next number: held while an object is written
        self._deleting = around.lock()  # held while objects are deleted
        self._thread = around.threads(1, "gradserve-state")
        self._tidied: Future[None] | None = None
        self._has_complained = False
        self._is_closing = self._is_lost = False

    def load(self) -> Loaded:
        """Implement `Journal.load`."""
        try:
            for _ in range(_BEGINNINGS):
                with suppress(Vanished), Reading(self._objects, self._place, self._around) as reading:
                    return self._loaded(reading)
        except OSError as error:
            raise RuntimeError(f"{self._place} cannot be read: {error.strerror or error}") from None
        raise RuntimeError(f"{self._place} cannot be read: commits are listed there that are not there")

    def commit(self, batch: Sequence[Commit]) -> None:
        """Implement `Journal.commit`."""
        with self._lock:
            said = list(items_of(batch, self._claim.next).values())
            if said:
                self._write_items(said)
            self._ledger.expire(time.time())
            untidy, crowded = self._ledger.is_untidy(), self._ledger.is_crowded()
        if untidy and (self._tidied is None or self._tidied.done()):
            self._tidied = self._thread.submit(self._tidy)
        if crowded:
            with self._deleting:  # a disk that deletes more slowly than it writes must not fill up: wait for some
                pass

    def holds(self) -> bool:
        """Implement `Journal.holds`."""
        return self._claim.holds()

    def look(self) -> None:
        """Implement `Journal.look`."""
        self._claim.look()

    def give_up(self) -> None:
        """Implement `Journal.give_up`."""
        self._claim.give_up()

    def close(self) -> None:
        """Implement `Journal.close`."""
        if self._is_closing:
            return
        self._is_closing = True
        if not self._is_lost:
            self._thread.submit(self._tidy)  # once more, what goes quickly
        self._thread.shutdown()
        self._claim.end()
        self._objects.close()

    def _loaded(self, reading: Reading) -> Loaded:
        """Take the place, and load what is there. Raises Vanished, RuntimeError, OSError."""
        self._ledger = Ledger(self._tidiness)
        heads = self._claim.begin(reading)
        for sequence in sorted(heads):
            if heads[sequence].items:
                self._ledger.note(sequence, heads[sequence].nbytes, heads[sequence].items)
        self._ledger.expire(time.time())
        found = loaded(reading.data(self._ledger.current()))
        self._claim.settle()
        return found

    # What is written, the lock held

    def _write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> None:
        """Keep these items as the next object. Raises StateFull, StateLost, StateUnknown, OSError."""
        try:
            try:
                contents = self._claim.write_items(said)
            except OSError as error:
                if error.errno not in _FULL or not self._free_space():
                    raise
                contents = self._claim.write_items(said)
        except StateLost:
            self._is_lost = True
            raise
        except OSError as error:
            if error.errno in _FULL:
                raise StateFull(f"{self._place} has no room for it") from error
            raise
        self._ledger.note(contents.sequence, contents.nbytes, contents.items)

    def _free_space(self) -> bool:
        """Delete what is dead before its turn, though a backup may want it; whether there was anything."""
        drop_holds(self._objects)
        dead = self._deletable()
        self._remove(dead)
        self._ledger.gone(dead)
        return bool(dead)

    def _deletable(self) -> list[int]:
        return [sequence for sequence in self._ledger.dead() if sequence != self._claim.next - 1]

    def _remove(self, dead: Iterable[int]) -> None:
        """Delete these objects; of those whose number has to stay, what they say."""
        deleted = []
        for sequence in dead:
            stub = self._claim.stub(sequence)
            if stub is None:
                deleted.append(commit_key(sequence))
            else:
                self._objects.put(commit_key(sequence), stub)
        self._objects.delete(deleted)

    # What is tidied, by the thread

    def _tidy(self) -> None:
        try:
            self._delete_dead()
            if self._move_together():
                self._delete_dead()
        except (StateLost, StateUnknown):
            return  # the next commit tells
        except (OSError, StateFull, Damaged, Missing) as error:
            if not self._has_complained:
                self._has_complained = True
                _logger.warning("what is not current any more in %s stays there for now: %s", self._place, error)

    def _delete_dead(self) -> None:
        """Delete the objects that are dead by now, unless a backup is being made.

        They are listed before holds are looked for: what is dead by then is dead in any backup that begins later. What
        dies meanwhile is left until it is worth it: one by one, each would cost a flush.
        """
        with self._lock:
            dead = self._deletable()
        while dead and not is_held(self._objects):
            some, dead = dead[:_DELETED], dead[_DELETED:]
            with self._deleting:
                self._remove(some)
            with self._lock:
                self._ledger.gone(some)
            if self._is_closing:
                return

    def _move_together(self) -> bool:
        """Write anew what is current of objects that are not worth their place; whether there was anything."""
        with self._lock:
            moving = self._ledger.worth_moving()
        for group in _groups(moving):
            if self._is_closing:
                break
            data = [(found, self._read_again(*found)) for found in group]
            with self._lock:
                said = [(found[1], blob) for found, blob in data if self._ledger.holds(*found)]
                if said:
                    self._write_items(said)
        return bool(moving)

    def _read_again(self, sequence: int, item: Item) -> memoryview | None:
        if item.nbytes is None:
            return None
        try:
            return memoryview(read_item(self._objects, sequence, item))
        except Missing:
            return None  # deleted meanwhile, so not current any more: it is not moved


def _groups(moving: Iterable[tuple[int, Item]]) -> Iterator[list[tuple[int, Item]]]:
    """Group items, each group for one object."""
    group: list[tuple[int, Item]] = []
    nbytes = 0
    for found in moving:
        if group and (len(group) == _MOVED_ITEMS or nbytes + (found[1].nbytes or 0) > _MOVED_BYTES):
            yield group
            group, nbytes = [], 0
        group.append(found)
        nbytes += found[1].nbytes or 0
    if group:
        yield group
