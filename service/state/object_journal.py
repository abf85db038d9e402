"""A journal of objects: each batch of commits is one, with the next number, made where nothing is yet.

Making an object that must be new is what keeps two servers apart. Where nothing else does, a server that begins makes
one without items first: whoever wrote here before meets it under the number that would have been its next, and knows
that it has lost the place. Such openings stay, the last thousand of them, since nobody knows how long a server can
sleep; and numbers have no end that could be reached twice, since the last object is never deleted.

What is not current any more is deleted by a thread, and what is current of old objects is moved together by it, in
commits like others. A crash at any point leaves objects that say the same.
"""

from __future__ import annotations

import errno
import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Final

from service.state.holds import drop_holds, is_held
from service.state.items import Item, items_of, loaded
from service.state.journal import Loaded, StateFull, StateLost
from service.state.ledger import Ledger, Tidiness
from service.state.objects import Exists, Missing, Objects
from service.state.packing import Contents, Damaged, encoded
from service.state.reading import Reading, commit_key, read_head, read_item
from service.state.values import Commit

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_OPENINGS: Final = 1000
#: objects that are deleted at once: a server that ends waits for no more
_DELETED: Final = 100
#: what one object gets of what is moved: commits wait while it is written
_MOVED_BYTES: Final = 8 << 20
_MOVED_ITEMS: Final = 2048

_logger = logging.getLogger("gradserve.state")


class ObjectJournal:
    """Commits as objects of one place, which messages call `place`."""

    def __init__(self, objects: Objects, place: str, tidiness: Tidiness | None = None) -> None:
        self._objects, self._place = objects, place
        self._ledger = Ledger(tidiness or Tidiness())
        self._lock = Lock()  # over the ledger and the next number: held while an object is written
        self._deleting = Lock()  # held while objects are deleted
        self._next = 1
        self._failed: set[str] = set()  # tokens of objects that may have got the next number, though we were told not
        self._lost = False
        self._thread = ThreadPoolExecutor(1, "gradserve-state")
        self._tidied: Future[None] | None = None
        self._has_complained = False
        self._is_closing = False

    def load(self) -> Loaded:
        """As `Journal` has it."""
        try:
            with Reading(self._objects, self._place) as reading:
                self._note(self._begun(reading))
                return loaded(reading.data(self._ledger.current()))
        except OSError as error:
            raise RuntimeError(f"{self._place} cannot be read: {error.strerror or error}") from None

    def commit(self, batch: Sequence[Commit]) -> None:
        """As `Journal` has it."""
        with self._lock:
            said = list(items_of(batch, self._next).values())
            if said:
                self._write(said)
            self._ledger.expire(time.time())
            untidy, crowded = self._ledger.is_untidy(), self._ledger.is_crowded()
        if untidy and (self._tidied is None or self._tidied.done()):
            self._tidied = self._thread.submit(self._tidy)
        if crowded:
            with self._deleting:  # a disk that deletes more slowly than it writes must not fill up: wait for some
                pass

    def close(self) -> None:
        """As `Journal` has it."""
        if self._is_closing:
            return
        self._is_closing = True
        if not self._lost:
            self._thread.submit(self._tidy)  # once more, what goes quickly
        self._thread.shutdown()
        self._objects.close()

    def _begun(self, reading: Reading) -> dict[int, Contents]:
        """The heads of all commits before ours: nobody else adds one any more."""
        heads: dict[int, Contents] = {}
        while True:
            heads |= reading.heads(n for n in reading.sequences() if n not in heads)
            self._next = max(heads, default=0) + 1
            if self._objects.exclusive or self._begin():
                return heads

    def _begin(self) -> bool:
        """Make the object that keeps others out; False where another server was faster."""
        pieces, _ = encoded(self._next, secrets.token_hex(8), ())
        try:
            self._objects.put_new(commit_key(self._next), pieces)
        except Exists:
            return False
        self._next += 1
        return True

    def _note(self, heads: dict[int, Contents]) -> None:
        """Enter what was read; openings beyond the last thousand are deleted."""
        openings = [sequence for sequence in sorted(heads) if not heads[sequence].items]
        for sequence in sorted(heads.keys() - set(openings)):
            self._ledger.note(sequence, heads[sequence].nbytes, heads[sequence].items)
        self._ledger.expire(time.time())
        if len(openings) > _OPENINGS:
            self._objects.delete([commit_key(sequence) for sequence in openings[:-_OPENINGS]])

    # What is written, the lock held

    def _write(self, said: Sequence[tuple[Item, memoryview | None]]) -> None:
        """Keep these items as the next object. Raises StateFull, StateLost, OSError."""
        if self._lost:
            raise self._loss()
        try:
            try:
                self._put(said)
            except OSError as error:
                if error.errno not in _FULL or not self._make_room():
                    raise
                self._put(said)
        except OSError as error:
            if error.errno in _FULL:
                raise StateFull(f"{self._place} has no room for it") from error
            raise

    def _put(self, said: Sequence[tuple[Item, memoryview | None]]) -> None:
        token = secrets.token_hex(8)
        pieces, contents = encoded(self._next, token, said)
        try:
            self._create(pieces, token)
        except OSError:
            self._failed.add(token)
            with suppress(OSError):  # the next commit looks again
                self._withdraw()
            raise
        self._ledger.note(self._next, contents.nbytes, contents.items)
        self._next += 1
        self._failed.clear()

    def _create(self, pieces: Sequence[bytes | memoryview], token: str) -> None:
        """Make the next object. What is there already may be this very one, written by a request that was repeated; or
        one of ours that failed, as we were told, and is withdrawn. Otherwise the place is another server's.
        """
        for _ in range(len(self._failed) + 1):
            try:
                return self._objects.put_new(commit_key(self._next), pieces)
            except Exists:
                if self._withdraw() == token:
                    return None
        self._lost = True
        raise self._loss()

    def _withdraw(self) -> str | None:
        """Remove what a failed write left under the next number; the token of what is there, if anything is."""
        try:
            found = read_head(self._objects, self._next).token
        except (Missing, Damaged):
            return None
        if found in self._failed:
            self._objects.delete([commit_key(self._next)])
        return found

    def _make_room(self) -> bool:
        """Delete what is dead before its turn, though a backup may want it; whether there was anything."""
        drop_holds(self._objects)
        dead = self._deletable()
        self._objects.delete([commit_key(sequence) for sequence in dead])
        self._ledger.gone(dead)
        return bool(dead)

    def _deletable(self) -> list[int]:
        return [sequence for sequence in self._ledger.dead() if sequence != self._next - 1]

    def _loss(self) -> StateLost:
        return StateLost(f"another server writes to {self._place} now; this one has stopped writing there")

    # What is tidied, by the thread

    def _tidy(self) -> None:
        try:
            self._delete_dead()
            if self._move_together():
                self._delete_dead()
        except StateLost:
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
                self._objects.delete([commit_key(sequence) for sequence in some])
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
                    self._write(said)
        return bool(moving)

    def _read_again(self, sequence: int, item: Item) -> memoryview | None:
        if item.nbytes is None:
            return None
        try:
            return memoryview(read_item(self._objects, sequence, item))
        except Missing:
            return None  # deleted meanwhile, so not current any more: it is not moved


def _groups(moving: Iterable[tuple[int, Item]]) -> Iterator[list[tuple[int, Item]]]:
    """What goes into one object each."""
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
