"""Object journal: a log-structured store, in which each batch of commits is one immutable object.

Objects are numbered, and each is created where nothing is yet (`commits/00000000000000000007`). It holds items, each of
which sets or deletes one key. The state is what the items come to in the order of the numbers:

    1   w = A, b = B
    2   w = C              → w in 1 is not current any more
    3   end of b           → b in 1 is not current any more: object 1 is dead, and can be deleted

An `Ownership` decides which server may create the next object: by a lock on a folder (`ExclusiveWriter`), or, if
several servers reach the objects, by their numbers (`LeaseWriter`).

The `Ledger` knows which items are current, and in which objects. A thread tidies: it deletes dead objects, and moves
current items out of objects that are mostly waste, or small and many, in commits like others. It never deletes the
last object, so that no number is used twice. A crash at any point leaves objects that come to the same state.

While there is a *hold*, nothing is deleted, so that a backup finds the objects that it has listed. A hold is an object
whose key says until when it is valid, in Unix seconds: that of a killed backup ends by itself. A server that runs out
of space drops all holds, and then the backup fails.
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

HOLDS: Final = "holds/"
_HOLD: Final = re.compile(rf"{HOLDS}([0-9]{{1,18}})\.[0-9a-f]+")
#: estimated cost of an object beside its bytes: a block, an entry of the folder, a look when the state is loaded
_OBJECT_COST: Final = 4096
#: estimated cost of an item beside its bytes: its row in the head
_ITEM_COST: Final = 512
#: multiple of the limits of `Tidiness` for dead objects at which writers wait
_CROWDED: Final = 16
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
#: attempts to read a state from the beginning while commits vanish
_BEGINNINGS: Final = 100
#: objects that are deleted at once: a server that ends waits for no more
_DELETED: Final = 100
#: most bytes and items that are moved into one object: commits wait while it is written
_MOVED_BYTES: Final = 8 << 20
_MOVED_ITEMS: Final = 2048

_logger = logging.getLogger("gradserve.state")


def put_hold(objects: Objects, seconds: float) -> str:
    """Ask a server to delete nothing for so many seconds; return the key of the hold."""
    key = f"{HOLDS}{int(time.time() + seconds)}.{secrets.token_hex(8)}"
    objects.put(key, [])  # nothing in it: a full disk takes it too
    return key


def is_held(objects: Objects) -> bool:
    """Return whether there is a valid hold. Expired ones are removed."""
    holds = list(objects.list(HOLDS))
    over = [key for key in holds if not (match := _HOLD.fullmatch(key)) or int(match[1]) < time.time()]
    if over:
        objects.delete(over)
    return len(holds) > len(over)


def drop_holds(objects: Objects) -> None:
    """Remove all holds."""
    objects.delete(list(objects.list(HOLDS)))


@dataclass(frozen=True, slots=True)
class Tidiness:
    """Thresholds for tidying."""

    #: dead objects, or their bytes, at which they are deleted
    dead_objects: int = 64
    dead_bytes: int = 16 << 20
    #: bytes of waste in objects that also hold current items, at which these are moved; the bytes of all current items,
    #: if they are more
    worn_bytes: int = 64 << 20
    #: objects of less than `small_bytes`, at which their items are moved together
    small_objects: int = 2048
    small_bytes: int = 64 << 10


@dataclass(slots=True)
class _Object:
    nbytes: int
    keys: tuple[ItemKey, ...]
    current: int = 0  # items
    current_bytes: int = 0


class Ledger:
    """Objects of a journal by their numbers, and the current items in them.

    An item is current until a later one has its key, or it expires. An object without current items is dead, and can be
    deleted in any order with others. One exception: the deletion of a key stays current as long as there is an object
    with a value of this key, or the value would come back.
    """

    def __init__(self, tidiness: Tidiness) -> None:
        self._tidiness = tidiness
        self._objects: dict[int, _Object] = {}
        self._current: dict[ItemKey, tuple[int, Item]] = {}
        self._holders: defaultdict[ItemKey, set[int]] = defaultdict(set)  # objects that hold a value, current or not
        self._dead: dict[int, None] = {}  # in the order in which they died
        self._expiring: list[tuple[float, ItemKey]] = []
        self._bytes = self._current_bytes = self._dead_bytes = self._small = 0

    def note(self, sequence: int, nbytes: int, items: Sequence[Item]) -> None:
        """Note that an object of so many bytes has been written: its items are current from now on."""
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
        """List the items that are values, each with the number of its object."""
        return [(sequence, item) for sequence, item in self._current.values() if item.nbytes is not None]

    def holds(self, sequence: int, item: Item) -> bool:
        """Return whether this item of this object is current."""
        return self._current.get(item.key) == (sequence, item)

    def dead(self) -> list[int]:
        """List the objects that may be deleted, in any order."""
        return list(self._dead)

    def gone(self, sequences: Iterable[int]) -> None:
        """Note that these dead objects are deleted durably."""
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
        """Return whether so many objects are dead that writers should wait."""
        limits = self._tidiness
        return len(self._dead) >= _CROWDED * limits.dead_objects or self._dead_bytes >= _CROWDED * limits.dead_bytes

    def worth_moving(self) -> list[tuple[int, Item]]:
        """List the current items of objects that are to be emptied, the emptiest objects first."""
        alive = [(n, held) for n, held in self._objects.items() if held.current]
        chosen: dict[int, None] = {}
        if self._is_worn():
            shares = sorted((held.current_bytes / held.nbytes, n) for n, held in alive)
            chosen |= dict.fromkeys(n for share, n in shares if share < 1 / 2)
        if self._is_scattered():
            chosen |= dict.fromkeys(n for n, held in alive if self._is_small(held))
        known = ((n, self._current.get(key)) for n in chosen for key in self._objects[n].keys)
        return [current for n, current in known if current and current[0] == n]

    def _enter(self, sequence: int, item: Item) -> None:
        holder = self._objects[sequence]
        if item.nbytes is not None:
            self._holders[item.key].add(sequence)
        elif item.key not in self._holders:
            return  # the deletion of a key without values
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
                if key in self._current:  # its deletion, which is not needed any more
                    self._release(key)

    def _is_worn(self) -> bool:
        waste = self._bytes - self._dead_bytes - self._current_bytes
        waste -= _OBJECT_COST * (len(self._objects) - len(self._dead))
        return waste > max(self._tidiness.worn_bytes, self._current_bytes)

    def _is_scattered(self) -> bool:
        return self._small > self._tidiness.small_objects

    def _is_small(self, held: _Object) -> bool:
        return held.nbytes < self._tidiness.small_bytes + _OBJECT_COST


def _cost(item: Item) -> int:
    return (item.nbytes or 0) + _ITEM_COST


class ObjectJournal:
    """Journal of commits as objects of one place, which messages call `place`."""

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

        `owner`: this server's address, if other servers forward requests to the owner of the place.
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
        """Take the place, and load the state. Raises Vanished, RuntimeError, OSError."""
        self._ledger = Ledger(self._tidiness)
        heads = self._claim.begin(reading)
        for sequence in sorted(heads):
            if heads[sequence].items:
                self._ledger.note(sequence, heads[sequence].nbytes, heads[sequence].items)
        self._ledger.expire(time.time())
        state = loaded(reading.data(self._ledger.current()))
        self._claim.settle()
        return state

    def _write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> None:
        """Keep items as the next object, with the lock held. Raises StateFull, StateLost, StateUnknown, OSError."""
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
        """Delete dead objects at once, even if a backup needs them; return whether there were any."""
        drop_holds(self._objects)
        dead = self._deletable()
        self._remove(dead)
        self._ledger.gone(dead)
        return bool(dead)

    def _deletable(self) -> list[int]:
        return [sequence for sequence in self._ledger.dead() if sequence != self._claim.next - 1]

    def _remove(self, dead: Iterable[int]) -> None:
        """Delete these objects; those whose number has to stay are replaced by a stub."""
        deleted = []
        for sequence in dead:
            stub = self._claim.stub(sequence)
            if stub is None:
                deleted.append(commit_key(sequence))
            else:
                self._objects.put(commit_key(sequence), stub)
        self._objects.delete(deleted)

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

        They are listed before holds are looked for: an object that is dead by then is dead in any later backup, too.
        Objects that die meanwhile are left until there are many: one by one, each would cost a flush.
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
        """Move current items out of objects that are mostly waste, or small and many; return whether there were any."""
        with self._lock:
            moving = self._ledger.worth_moving()
        for group in _groups(moving):
            if self._is_closing:
                break
            data = [(placed, self._read_again(*placed)) for placed in group]
            with self._lock:
                said = [(placed[1], blob) for placed, blob in data if self._ledger.holds(*placed)]
                if said:
                    self._write_items(said)
        return bool(moving)

    def _read_again(self, sequence: int, item: Item) -> memoryview | None:
        if item.nbytes is None:
            return None
        try:
            return memoryview(read_item(self._objects, sequence, item))
        except Missing:
            return None  # deleted meanwhile, so not current any more, and not moved


def _groups(moving: Iterable[tuple[int, Item]]) -> Iterator[list[tuple[int, Item]]]:
    """Group items, each group for one object."""
    group: list[tuple[int, Item]] = []
    nbytes = 0
    for sequence, item in moving:
        if group and (len(group) == _MOVED_ITEMS or nbytes + (item.nbytes or 0) > _MOVED_BYTES):
            yield group
            group, nbytes = [], 0
        group.append((sequence, item))
        nbytes += item.nbytes or 0
    if group:
        yield group
