"""A journal of objects: each batch of commits is one, with the next number, made where nothing is yet.

Who may make it is decided by an owner of the place: by a lock (`ExclusiveWriter`), or, where several servers reach the
objects, by these themselves (`LeaseWriter`). The `Ledger` knows which items are current, and in which objects. What is
not current any more is deleted by a thread, and what is current of old objects is moved together by it, in commits like
others; the last object is never deleted, so that no number comes twice. A crash at any point leaves objects that say
the same.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from service.state.holds import drop_holds, is_held
from service.state.items import Item, items_of, loaded
from service.state.journal import Loaded, StateFull, StateLost, StateUnknown
from service.state.ledger import Ledger, Tidiness
from service.state.objects import Missing, Objects
from service.state.ownership import Ownership
from service.state.packing import Damaged
from service.state.reading import Reading, Vanished, commit_key, read_item
from service.state.sole import Sole
from service.state.surroundings import SYSTEM, Surroundings
from service.state.tenure import Tenure
from service.state.values import Commit

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
        self._claim: Ownership = Tenure(objects, place, lease, around, owner) if self.shared else Sole(objects, place)
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
