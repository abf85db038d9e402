"""Object journal: a log-structured store in which each batch of commits is one immutable object.

Objects are numbered without gaps, and each is created under a number that is free, as in `commits/0…07`. An object has
items, each of which sets or deletes one key. The state is the result of all items in the order of the numbers:

    1   w = A, b = B
    2   w = C              → w in 1 is not current any more
    3   delete b           → b in 1 is not current any more: object 1 is dead, and can be deleted

An `Ownership` decides which server may create the next object: by a lock on a folder (`ExclusiveWriter`), or, if
several servers reach the objects, by their numbers (`LeaseWriter`).

The `Ledger` knows which items are current, and in which objects. A background thread tidies: it deletes dead objects.
Objects that are mostly waste, or small and many, it empties first: their current items are written again, in a commit
like any other. Nothing is ever changed in place, so a crash at any point leaves objects that result in the same state.
The last object is never deleted, so that no number is used twice.

While there is a *hold*, nothing is deleted, so that a backup finds the objects that it has listed. A hold is an object
whose key tells until when it is valid, in Unix seconds: so the hold of a backup that was killed expires. A server that
runs out of space drops all holds, and then the backup fails.
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
    TENSOR,
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
from service.store.journal import SYSTEM, Environment, Loaded, Reserve, StateFull, StateLost, StateUnknown
from service.store.objects import Missing, Objects
from service.store.ownership import ExclusiveWriter, LeaseWriter, Ownership
from service.store.writes import Commit

HOLDS: Final = "holds/"
_HOLD: Final = re.compile(rf"{HOLDS}([0-9]{{1,18}})\.[0-9a-f]+")
#: estimated cost of an object besides its bytes: a disk block, a directory entry, a request when the state is loaded
_OBJECT_COST: Final = 4096
#: estimated cost of an item besides its bytes: its row in the head
_ITEM_COST: Final = 512
#: multiple of the thresholds for dead objects at which writers have to wait
_CROWDED_FACTOR: Final = 16
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
#: attempts to load a state while the owner deletes commits that were listed
_LOAD_ATTEMPTS: Final = 100
#: objects that are deleted at a time; a server that is closing waits for one such group
_DELETED_AT_ONCE: Final = 100
#: most bytes and items that are moved into one object, during which commits wait
_MOVED_BYTES: Final = 8 << 20
_MOVED_ITEMS: Final = 2048

_logger = logging.getLogger("gradserve.state")


def put_hold(objects: Objects, seconds: float) -> str:
    """Ask the server to delete nothing for `seconds` seconds; return the key of the hold."""
    key = f"{HOLDS}{int(time.time() + seconds)}.{secrets.token_hex(8)}"
    objects.put(key, [])  # empty, so that it fits on a full disk
    return key


def is_held(objects: Objects) -> bool:
    """Return whether there is a valid hold. Expired holds are removed."""
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

    #: number of dead objects, or their bytes, at which they are deleted
    dead_objects: int = 64
    dead_bytes: int = 16 << 20
    #: bytes of waste in objects with current items, at which these are moved; but not less than the bytes of all
    #: current items
    worn_bytes: int = 64 << 20
    #: number of objects of less than `small_bytes`, at which their items are moved together
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

    An item is current until a later one has the same key, or until it expires. An object without current items is dead;
    dead objects can be deleted in any order. One exception: the deletion of a key stays current as long as any object
    has a value of the key. If the deletion went first, a crash would bring the value back.
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
        """Record an object that was written: its items are current from now on."""
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
        """Release the items that have expired by `now`, in Unix seconds."""
        while self._expiring and self._expiring[0][0] <= now:
            _, key = heapq.heappop(self._expiring)
            known = self._current.get(key)
            if known and known[1].expires is not None and known[1].expires <= now:
                self._release(key)

    def current(self) -> list[tuple[int, Item]]:
        """List the current values, each with the number of its object."""
        return [(sequence, item) for sequence, item in self._current.values() if item.nbytes is not None]

    def find(self, key: ItemKey) -> tuple[int, Item] | None:
        """Return the current item with this key, and the number of its object. For any thread."""
        return self._current.get(key)

    def holds(self, sequence: int, item: Item) -> bool:
        """Return whether this item of this object is current."""
        return self._current.get(item.key) == (sequence, item)

    def dead(self) -> list[int]:
        """List the dead objects."""
        return list(self._dead)

    def gone(self, sequences: Iterable[int]) -> None:
        """Record that these dead objects were deleted durably."""
        for sequence in sequences:
            if sequence in self._dead:
                del self._dead[sequence]
                self._forget(self._objects.pop(sequence), sequence)

    def is_untidy(self) -> bool:
        """Return whether deleting or moving objects is worth it."""
        limits = self._tidiness
        many = len(self._dead) >= limits.dead_objects or self._dead_bytes >= limits.dead_bytes
        return many or self._is_worn() or self._is_scattered()

    def is_crowded(self) -> bool:
        """Return whether there are so many dead objects that writers should wait."""
        limits = self._tidiness
        return (
            len(self._dead) >= _CROWDED_FACTOR * limits.dead_objects
            or self._dead_bytes >= _CROWDED_FACTOR * limits.dead_bytes
        )

    def worth_moving(self) -> list[tuple[int, Item]]:
        """List the current items of objects that should be emptied, the emptiest object first."""
        alive = [(n, held) for n, held in self._objects.items() if held.current]
        chosen: dict[int, None] = {}
        if self._is_worn():
            shares = sorted((held.current_bytes / held.nbytes, n) for n, held in alive)
            chosen |= dict.fromkeys(n for share, n in shares if share < 1 / 2)
        if self._is_scattered():
            chosen |= dict.fromkeys(n for n, held in alive if self._is_small(held))
        # Only these objects are looked up: walking over all current items would take long with the lock held.
        known = ((n, self._current.get(key)) for n in chosen for key in self._objects[n].keys)
        return [current for n, current in known if current and current[0] == n]

    def _enter(self, sequence: int, item: Item) -> None:
        holder = self._objects[sequence]
        if item.nbytes is not None:
            self._holders[item.key].add(sequence)
        elif item.key not in self._holders:
            return  # the deletion of a key that no object has
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
    """Journal whose commits are objects of one place, which messages call `place`."""

    def __init__(
        self,
        objects: Objects,
        place: str,
        tidiness: Tidiness | None = None,
        lease: float = 0.0,
        environment: Environment = SYSTEM,
        owner: str | None = None,
    ) -> None:
        """Set up without reading anything.

        `lease`: seconds for which a look at a shared place stays valid; 0: each answer needs a look. `owner`: this
        server's address, if other servers forward requests to the owner of the place.
        """
        self._objects, self._place, self._environment = objects, place, environment
        self.shared = not objects.exclusive
        self._ownership: Ownership = (
            LeaseWriter(objects, place, lease, environment, owner) if self.shared else ExclusiveWriter(objects, place)
        )
        self._tidiness = tidiness or Tidiness()
        self._ledger = Ledger(self._tidiness)
        self._lock = environment.lock()  # guards the ledger and the next number; held while an object is written
        self._deleting = environment.lock()  # held while objects are deleted
        self._thread = environment.threads(1, "gradserve-state")
        self._tidied: Future[None] | None = None
        self._has_warned = False
        self._is_closing = self._is_lost = False

    def load(self, reserve: Reserve = int) -> Loaded:
        """Implement `Journal.load`."""
        try:
            for _ in range(_LOAD_ATTEMPTS):
                with suppress(Vanished), Reading(self._objects, self._place, self._environment) as reading:
                    return self._loaded(reading, reserve)
        except OSError as error:
            raise RuntimeError(f"cannot read {self._place}: {error.strerror or error}") from None
        raise RuntimeError(f"cannot read {self._place}: commits are listed, but missing")

    def keeps(self, namespace: str, name: str, etag: str) -> bool:
        """Implement `Journal.keeps`."""
        return self._find(namespace, name, etag) is not None

    def read(self, namespace: str, name: str, etag: str) -> bytes | None:
        """Implement `Journal.read`."""
        for _ in range(_LOAD_ATTEMPTS):
            if (known := self._find(namespace, name, etag)) is None:
                return None
            try:
                return read_item(self._objects, *known)
            except Missing:
                continue  # the item was moved into another object
            except Damaged as error:
                raise RuntimeError(f"{self._place} is damaged: {commit_key(known[0])} {error}") from None
        raise OSError(f"cannot read {self._place}: a tensor is listed, but missing")

    def commit(self, batch: Sequence[Commit]) -> None:
        """Implement `Journal.commit`."""
        with self._lock:
            pairs = list(items_of(batch, self._ownership.next).values())
            if pairs:
                self._write_items(pairs)
            self._ledger.expire(time.time())
            untidy, crowded = self._ledger.is_untidy(), self._ledger.is_crowded()
        if untidy or self._ownership.superseded():
            self._tidy_later()
        if crowded:
            with self._deleting:  # wait: else a disk that writes faster than it deletes would fill up
                pass

    def holds(self) -> bool:
        """Implement `Journal.holds`."""
        return self._ownership.lease_left() > 0

    def lease_left(self) -> float:
        """Implement `Journal.lease_left`."""
        return self._ownership.lease_left()

    def look(self) -> None:
        """Implement `Journal.look`."""
        self._ownership.look()
        if self._ownership.superseded():
            self._tidy_later()

    def is_blind(self) -> bool:
        """Implement `Journal.is_blind`."""
        return self._ownership.is_blind()

    def give_up(self) -> None:
        """Implement `Journal.give_up`."""
        self._ownership.give_up()

    def close(self, successor: str | None = None) -> None:
        """Implement `Journal.close`."""
        if self._is_closing:
            return
        self._is_closing = True
        if not self._is_lost:
            self._thread.submit(self._tidy)  # again, as far as it is quick
        self._thread.shutdown()
        self._ownership.end(successor)
        self._objects.close()

    def _loaded(self, reading: Reading, reserve: Reserve) -> Loaded:
        """Take the place, and load the state. Raises Vanished, RuntimeError, OSError."""
        self._ledger = Ledger(self._tidiness)
        heads = self._ownership.begin(reading)
        for sequence in sorted(heads):
            if heads[sequence].items:
                self._ledger.note(sequence, heads[sequence].nbytes, heads[sequence].items)
        self._ledger.expire(time.time())
        present, unloaded = _split(self._ledger.current(), reserve)
        state = loaded([*reading.data(present), *((item, None) for _, item in unloaded)])
        self._ownership.settle()
        return state

    def _find(self, namespace: str, name: str, etag: str) -> tuple[int, Item] | None:
        known = self._ledger.find((TENSOR, namespace, name))
        return None if known is None or known[1].facts.get("etag") != etag else known

    def _write_items(self, pairs: Sequence[tuple[Item, memoryview | None]]) -> None:
        """Write items as the next object, with the lock held. Raises StateFull, StateLost, StateUnknown, OSError."""
        try:
            try:
                contents = self._ownership.write_items(pairs)
            except OSError as error:
                if error.errno not in _FULL or not self._free_space():
                    raise
                contents = self._ownership.write_items(pairs)
        except StateLost:
            self._is_lost = True
            raise
        except OSError as error:
            if error.errno in _FULL:
                raise StateFull(f"{self._place} is full") from error
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
        return [sequence for sequence in self._ledger.dead() if sequence != self._ownership.next - 1]

    def _remove(self, dead: Iterable[int]) -> None:
        """Delete these objects; if the number of one has to stay, replace it by a stub."""
        deleted = []
        for sequence in dead:
            stub = self._ownership.stub(sequence)
            if stub is None:
                deleted.append(commit_key(sequence))
            else:
                self._objects.put(commit_key(sequence), stub)
        self._objects.delete(deleted)

    def _tidy_later(self) -> None:
        if self._tidied is None or self._tidied.done():
            with suppress(RuntimeError):  # the journal has been closed meanwhile
                self._tidied = self._thread.submit(self._tidy)

    def _tidy(self) -> None:
        try:
            self._delete_dead()
            if self._move_together():
                self._delete_dead()
        except (StateLost, StateUnknown):
            return  # the next commit reports it
        except (OSError, StateFull, Damaged, Missing) as error:
            if not self._has_warned:
                self._has_warned = True
                _logger.warning("cannot delete outdated data in %s yet: %s", self._place, error)

    def _delete_dead(self) -> None:
        """Delete the objects that are dead by now, unless a backup holds them.

        They are listed before holds are checked: an object that is dead now is also dead in any later backup. Objects
        that die meanwhile wait until there are many: deleting them one by one would cost a flush each.
        """
        with self._lock:
            dead = [*self._ownership.superseded(), *self._deletable()]
        while dead and not is_held(self._objects):
            group, dead = dead[:_DELETED_AT_ONCE], dead[_DELETED_AT_ONCE:]
            with self._deleting:
                self._remove(group)
            with self._lock:
                self._ledger.gone(group)
                self._ownership.deleted(group)
            if self._is_closing:
                return

    def _move_together(self) -> bool:
        """Move current items out of objects that are mostly waste, or small and many; return whether there were any."""
        with self._lock:
            moving = self._ledger.worth_moving()
        for group in _groups(moving):
            if self._is_closing:
                break
            data = [(numbered, self._read_moving(*numbered)) for numbered in group]
            with self._lock:
                pairs = [(numbered[1], blob) for numbered, blob in data if self._ledger.holds(*numbered)]
                if pairs:
                    self._write_items(pairs)
        return bool(moving)

    def _read_moving(self, sequence: int, item: Item) -> memoryview | None:
        if item.nbytes is None:
            return None
        try:
            return memoryview(read_item(self._objects, sequence, item))
        except Missing:
            return None  # deleted meanwhile: the item is not current any more, and need not be moved


def _split(
    current: Iterable[tuple[int, Item]], reserve: Reserve
) -> tuple[list[tuple[int, Item]], list[tuple[int, Item]]]:
    """Split items into those to be loaded, the newest tensors as far as there is room, and the other tensors."""
    tensors = [(number, item) for number, item in current if item.kind == TENSOR]
    present = [(number, item) for number, item in current if item.kind != TENSOR]
    room = reserve(sum(item.nbytes or 0 for _, item in tensors))
    unloaded: list[tuple[int, Item]] = []
    for number, item in sorted(tensors, key=lambda numbered: -numbered[0]):
        fits = (item.nbytes or 0) <= room
        (present if fits else unloaded).append((number, item))
        room -= (item.nbytes or 0) if fits else 0
    return present, unloaded


def _groups(moving: Iterable[tuple[int, Item]]) -> Iterator[list[tuple[int, Item]]]:
    """Group items into groups of the size of one object."""
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
