"""Ownership of a place: the right to write the next commit, and to answer what is there.

`ExclusiveWriter` has a place alone, by a lock. `LeaseWriter` claims a place that other servers reach as well: one of
them writes and answers, whatever becomes of requests. There, commits are numbered without gaps, and a number is used
once: so what stands under one is decided for all, and a state is what the commits up to a number come to. All that
follows keeps to that.

- A server that begins makes an *opening*, a commit without items, under the next number. It counts once a list of what
  is behind it, asked for afterwards, is empty: until then the number may have been another's, whose commit is deleted.
  Whoever wrote here before meets it under the number that would be its next.
- A write of which no answer came is in *doubt*. The same object is sent again, with its number and its token, until
  it is known whether it is there, or another's. It is never taken back: somebody may have read it.
- A number is never free again where its writer could still come back to it. Openings stay, and so does the last
  commit. What stands right before an opening may have been made by a server that does not know it yet; and what was
  sent more than once may arrive once more. Of these, the number and the token stay.
- What is in memory is what there is for as long as nobody else has written. That is seen by a *look*: the next number
  is free. It holds for a lease; a commit of ours that succeeded is as good. A server that begins answers nothing until
  the leases of those before it are over, unless the last of them has said that it released the place.
"""

from __future__ import annotations

import errno
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

from service.store.commit_objects import Contents, Damaged, Item, Note, Reading, commit_key, encoded, read_head
from service.store.journal import StateLost, StateUnknown, Surroundings
from service.store.objects import Data, Denied, Exists, Missing, Objects


class Taken(Exception):
    """Another server, at the address `owner`, has just begun, in Unix seconds; it is to be asked."""

    def __init__(self, owner: str, began: float) -> None:
        super().__init__(owner, began)
        self.owner, self.began = owner, began


class Ownership(Protocol):
    """The right to make the next commit. All of it blocks; one thread writes, and another may look meanwhile."""

    next: int
    """The number of the next commit."""

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Take the place; the heads of all commits so far, by their numbers.

        Raises RuntimeError with one sentence, Taken, Vanished, OSError.
        """

    def settle(self) -> None:
        """Return when nobody else answers any more what was there before."""

    def write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Make the next commit, of these items. Raises StateLost, StateUnknown; upon OSError nothing was made."""

    def holds(self) -> bool:
        """Return whether what this server knows is known to be current without a look."""

    def look(self) -> None:
        """Find out that nobody else has written. Raises StateLost, OSError."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Return what has to stay in place of a commit of which nothing is current; None if it may be deleted."""

    def give_up(self) -> None:
        """Try nothing again: what is in doubt stays so."""

    def end(self) -> None:
        """Leave the place to others. Nothing is answered any more."""


def loss(place: str) -> StateLost:
    """Return the error that another server has the place, which messages call `place`."""
    return StateLost(f"another server writes to {place} now; this one has stopped writing there")


# The claim to a place that other servers reach as well: one of them writes and answers.

#: seconds after an opening in which no other server makes one, where there is somebody to ask
PEACE: Final = 5.0
#: leases that a server which begins waits, as clocks may differ by a fifth
_PATIENCE: Final = 1.2
#: how often a server tries to begin beside one that writes on
_ROUNDS: Final = 1000
#: seconds between two tries of a write in doubt: at first, and in the end
_SOON: Final = 0.05
_LATE: Final = 2.0
#: looks while a write of ours is on its way, and seconds after the first, which double
_LOOKS: Final = 8
_BETWEEN: Final = 0.02
_NEVER: Final = float("-inf")

_logger = logging.getLogger("gradserve.state")


class LeaseWriter:
    """Writer of commits to objects that others write to, as long as nobody else does; a lease is so many seconds."""

    def __init__(
        self, objects: Objects, place: str, lease: float, around: Surroundings, owner: str | None = None
    ) -> None:
        """`owner`: the address that its commits tell, where others ask whoever has the place."""
        self._objects, self._place = objects, place
        self._lease, self._around = lease, around
        self._note = Note(lease, owner=owner)
        self.next = 1
        self._token = ""  # of the commit that is being made, or was made last
        self._again = False  # whether what was made last was sent more than once
        self._stubs: dict[int, Contents] = {}  # commits whose numbers stay, but for openings
        self._looked = self._settled = _NEVER
        self._lost = self._ended = self._gives_up = False

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Implement `Ownership.begin`."""
        heads: dict[int, Contents] = {}
        for _ in range(_ROUNDS):
            listed = reading.sequences()
            heads = {n: heads[n] for n in listed if n in heads}
            heads |= reading.heads(n for n in listed if n not in heads)
            if len(heads) == len(listed):
                self._keep_peace(heads)
                if self._opened(max(listed, default=0) + 1, reading):
                    self._inherit(heads)
                    return heads
        raise RuntimeError(f"{self._place} is written to by another server all the time; end that one first")

    def settle(self) -> None:
        """Implement `Ownership.settle`: the leases of those before are over."""
        self._around.sleep(max(0.0, self._settled - self._around.now()))

    def write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Implement `Ownership.write_items`."""
        if self._lost or self._ended:
            raise loss(self._place)
        if self._gives_up:
            raise StateUnknown
        before = self._again
        contents = self._made(said, replace(self._note, again=before))
        if contents is None:
            self._lost = True
            raise loss(self._place)
        if self._again or before:
            self._stubs[self.next] = contents
        self.next += 1
        return contents

    def holds(self) -> bool:
        """Implement `Ownership.holds`: a look, or a commit that succeeded, was begun less than a lease ago."""
        return not self._lost and not self._ended and self._around.now() - self._looked < self._lease

    def look(self) -> None:
        """Implement `Ownership.look`. What is there may be a commit of our own of which we do not know yet."""
        for turn in range(_LOOKS):
            if self._lost or self._ended:
                break
            number, began = self.next, self._around.now()
            token = self._token_at(number)
            if token is None:
                self._looked = max(self._looked, began)
                return
            if number == self.next and token != self._token:
                self._lost = True
                break
            self._around.sleep(_BETWEEN * 2**turn)
            if self._looked >= began:
                return
        if self._lost or self._ended:
            raise loss(self._place)
        raise OSError(errno.EBUSY, "it is not known yet what became of the last commit")

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Implement `Ownership.stub`: what has a number that stays, without its items."""
        head = self._stubs.get(sequence)
        return None if head is None else encoded(sequence, head.token, (), replace(head.note, emptied=True))[0]

    def give_up(self) -> None:
        """Implement `Ownership.give_up`."""
        self._gives_up = True

    def end(self) -> None:
        """Implement `Ownership.end`. Who comes next need not wait, if this is known to them; it is tried once."""
        self._ended = True
        if not self._lost and not self._gives_up:
            note = replace(self._note, lease=None, again=self._again, released=True)
            parts, _ = encoded(self.next, secrets.token_hex(8), (), note)
            with suppress(OSError, Exists):
                self._objects.put_new(commit_key(self.next), parts)

    # How it begins

    def _keep_peace(self, heads: Mapping[int, Contents]) -> None:
        """Raise Taken where another server made an opening a moment ago: each would undo what the other has begun."""
        note = heads[max(heads)].note if heads else self._note
        if note.released or note.began is None or None in (note.owner, self._note.owner):
            return
        if note.owner != self._note.owner and 0 <= self._around.today() - note.began < PEACE:
            raise Taken(str(note.owner), note.began)

    def _opened(self, number: int, reading: Reading) -> bool:
        """Make an opening; whether it stands behind all that there is."""
        self.next = number
        if self._note.owner is not None:
            self._note = replace(self._note, began=self._around.today())
        opening = self._made((), self._note)
        if opening is None:
            return False
        self._settled = self._around.now()
        self._again = False  # its number stays in any case
        self.next += 1
        return not reading.sequences(after=number)

    def _inherit(self, heads: Mapping[int, Contents]) -> None:
        """Find which numbers stay, and how long earlier owners may still answer."""
        opened = {n for n, head in heads.items() if head.is_opening} | {self.next - 1}
        again = {n for n, head in heads.items() if head.note.again}
        staying = again | {n - 1 for n in opened | again}
        self._stubs = {n: heads[n] for n in staying if n in heads}
        self._settled += _PATIENCE * max(self._leases(heads), default=0.0)

    def _leases(self, heads: Mapping[int, Contents]) -> Iterator[float]:
        """Iterate over the leases of those who may still answer: who wrote or released had waited for all before."""
        for number in sorted(heads, reverse=True):
            head = heads[number]
            if head.note.released:
                return
            yield self._lease if head.note.lease is None else head.note.lease
            if not head.is_opening:
                return

    # How a commit is made

    def _made(self, said: Sequence[tuple[Item, memoryview | None]], note: Note) -> Contents | None:
        """The next commit, once it is known to be there; None where another's is. Raises StateUnknown, Denied."""
        token = secrets.token_hex(8)
        parts, contents = encoded(self.next, token, said, note)
        began, pause, tries = self._around.now(), _SOON, 1
        self._token = token
        while (ours := self._tried(parts, first=tries == 1)) is None:
            if self._gives_up:
                raise StateUnknown
            self._around.sleep(pause)
            pause, tries = min(2 * pause, _LATE), tries + 1
        if not ours:
            return None
        self._again = tries > 1
        self._looked = max(self._looked, began)
        return contents

    def _tried(self, parts: Sequence[Data], *, first: bool) -> bool | None:
        """Return whether the next commit is ours, or another's; None if unknown. Raises Denied, if at `first`."""
        try:
            return self._sent(parts)
        except Denied:
            if first:
                raise
        except OSError as error:
            if first:
                said = "%s does not say what became of commit %d, and is asked again: %s"
                _logger.warning(said, self._place, self.next, error.strerror or error)
        return None

    def _sent(self, parts: Sequence[Data]) -> bool | None:
        """Send the next commit, and return as `_tried` does. Raises OSError."""
        try:
            self._objects.put_new(commit_key(self.next), parts)
        except Exists:  # or so it says: of several that race, S3 may tell all that they lost, and nothing is there
            found = self._token_at(self.next)
            return None if found is None else found == self._token
        return True

    def _token_at(self, number: int) -> str | None:
        """Return the token of the commit of a number; None if it is free. Raises OSError."""
        try:
            return read_head(self._objects, number).token
        except Missing:
            return None
        except Damaged:
            return ""


# The claim to a place that one server has alone, by a lock: nothing has to be looked for, and failures are undone.


class ExclusiveWriter:
    """Writer of commits to objects that are exclusively ours."""

    def __init__(self, objects: Objects, place: str) -> None:
        self._objects, self._place = objects, place
        self.next = 1
        self._failed: set[str] = set()  # tokens of objects that may have got the next number, though we were told not
        self._lost = False

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Implement `Ownership.begin`: nobody else adds any."""
        heads = reading.heads(reading.sequences())
        self.next = max(heads, default=0) + 1
        return heads

    def settle(self) -> None:
        """Implement `Ownership.settle`: nobody else is there."""

    def write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Implement `Ownership.write_items`."""
        if self._lost:
            raise loss(self._place)
        token = secrets.token_hex(8)
        parts, contents = encoded(self.next, token, said)
        try:
            self._create(parts, token)
        except OSError:
            self._failed.add(token)
            with suppress(OSError):  # the next commit looks again
                self._withdraw()
            raise
        self.next += 1
        self._failed.clear()
        return contents

    def holds(self) -> bool:
        """Implement `Ownership.holds`: always."""
        return True

    def look(self) -> None:
        """Implement `Ownership.look`: there is nobody to look for."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Implement `Ownership.stub`: nothing has to stay."""
        return None

    def give_up(self) -> None:
        """Implement `Ownership.give_up`: nothing is tried again."""

    def end(self) -> None:
        """Implement `Ownership.end`: the lock goes with the objects."""

    def _create(self, parts: Sequence[Data], token: str) -> None:
        """Make the next object. What is there already may be one of ours that failed, as we were told: that is undone.

        Anything else is of a server that heeds no lock.
        """
        for _ in range(len(self._failed) + 1):
            try:
                return self._objects.put_new(commit_key(self.next), parts)
            except Exists:
                if self._withdraw() == token:
                    return None
        self._lost = True
        raise loss(self._place)

    def _withdraw(self) -> str | None:
        """Remove what a failed write left under the next number; the token of what is there, if anything is."""
        try:
            found = read_head(self._objects, self.next).token
        except (Missing, Damaged):
            return None
        if found in self._failed:
            self._objects.delete([commit_key(self.next)])
        return found
