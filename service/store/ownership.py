"""Ownership of a place: the right to write the next commit, and to answer from the state.

`ExclusiveWriter` has a place alone, by a lock. `LeaseWriter` claims a place that other servers reach as well, so that
one server at a time writes and answers. Its commits are numbered without gaps, and a number is used once: the first
server to create an object wins the number, and all agree on the state up to it. The rest preserves that.

- A server begins with an *opening*, a commit without items, under the next number. It counts once a list of the commits
  behind it, requested afterwards, is empty: until then the number may have been another's, whose commit was deleted.
  The previous owner meets the opening under the number of its own next commit, and stops:

      5   commit of A
      6   opening of B       A's next write finds 6 taken: A has lost the place

- A write without an answer is in *doubt*. The same object is sent again, with its number and its token, until it is
  known whether it is there, or another's. It is never taken back: somebody may have read it.
- A number is never freed as long as its writer could still come back to it. Openings stay, and so does the last
  commit. The commit right before an opening may be by a server that does not know the opening yet; and a commit that
  was sent more than once may arrive once more. Of these two, the number and the token stay (a *stub*).
- Memory is current as long as nobody else has written. A *look* shows it: the next number is free. A look is valid for
  a lease, and so is a successful commit. A server that begins answers nothing until the leases of those before it are
  over, unless the last of them has released the place.
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

#: seconds after an opening in which no other server makes one, if it can ask the owner
PEACE: Final = 5.0
#: leases that a server which begins waits, as clocks may differ by a fifth
_PATIENCE: Final = 1.2
#: attempts of a server to begin beside one that writes on
_ROUNDS: Final = 1000
#: seconds between two attempts of a write in doubt: at first, and in the end
_SOON: Final = 0.05
_LATE: Final = 2.0
#: looks while a write of ours is on its way, and seconds after the first, which double
_LOOKS: Final = 8
_BETWEEN: Final = 0.02
_NEVER: Final = float("-inf")

_logger = logging.getLogger("gradserve.state")


class Taken(Exception):
    """Another server, at the address `owner`, has taken the place a moment ago, in Unix seconds; ask that one."""

    def __init__(self, owner: str, began: float) -> None:
        super().__init__(owner, began)
        self.owner, self.began = owner, began


class Ownership(Protocol):
    """The right to make the next commit. All methods block; one thread writes, and another may look meanwhile."""

    next: int
    """The number of the next commit."""

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Take the place; return the heads of all commits so far, by their numbers.

        Raises RuntimeError with one sentence, Taken, Vanished, OSError.
        """

    def settle(self) -> None:
        """Return once no earlier owner answers any more."""

    def write_items(self, said: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Make the next commit, of these items. Raises StateLost, StateUnknown; after OSError, nothing was made."""

    def holds(self) -> bool:
        """Return whether memory is known to be current without a look."""

    def look(self) -> None:
        """Look whether anybody else has written. Raises StateLost, OSError."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Return the stub that replaces a commit without current items; None if the commit may be deleted."""

    def give_up(self) -> None:
        """Stop repeating a write in doubt."""

    def end(self) -> None:
        """Leave the place to others. Nothing is answered any more."""


def loss(place: str) -> StateLost:
    """Return the error that another server has the place, which messages call `place`."""
    return StateLost(f"another server writes to {place} now; this one has stopped writing there")


class LeaseWriter:
    """Writer of commits to a place that other servers reach, as long as none of them writes; a lease is in seconds."""

    def __init__(
        self, objects: Objects, place: str, lease: float, around: Surroundings, owner: str | None = None
    ) -> None:
        """`owner`: the address in its commits, if other servers forward requests to the owner of the place."""
        self._objects, self._place = objects, place
        self._lease, self._around = lease, around
        self._note = Note(lease, owner=owner)
        self.next = 1
        self._token = ""  # of the commit that is being made, or was made last
        self._again = False  # whether the last commit was sent more than once
        self._stubs: dict[int, Contents] = {}  # commits whose numbers stay, without openings
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
        """Implement `Ownership.settle`: wait until the leases of earlier owners are over."""
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
        """Implement `Ownership.look`. The next number may have a commit of our own whose answer is on its way."""
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
        """Implement `Ownership.stub`: a commit whose number stays, without its items."""
        head = self._stubs.get(sequence)
        return None if head is None else encoded(sequence, head.token, (), replace(head.note, emptied=True))[0]

    def give_up(self) -> None:
        """Implement `Ownership.give_up`."""
        self._gives_up = True

    def end(self) -> None:
        """Implement `Ownership.end`. A commit releases the place, so that the next owner need not wait; sent once."""
        self._ended = True
        if not self._lost and not self._gives_up:
            note = replace(self._note, lease=None, again=self._again, released=True)
            parts, _ = encoded(self.next, secrets.token_hex(8), (), note)
            with suppress(OSError, Exists):
                self._objects.put_new(commit_key(self.next), parts)

    def _keep_peace(self, heads: Mapping[int, Contents]) -> None:
        """Raise Taken if another server made an opening a moment ago: the two would take the place from each other."""
        note = heads[max(heads)].note if heads else self._note
        if note.released or note.began is None or None in (note.owner, self._note.owner):
            return
        if note.owner != self._note.owner and 0 <= self._around.today() - note.began < PEACE:
            raise Taken(str(note.owner), note.began)

    def _opened(self, number: int, reading: Reading) -> bool:
        """Make an opening; return whether it is the last commit."""
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
        """Determine which numbers stay, and how long earlier owners may still answer."""
        opened = {n for n, head in heads.items() if head.is_opening} | {self.next - 1}
        again = {n for n, head in heads.items() if head.note.again}
        staying = again | {n - 1 for n in opened | again}
        self._stubs = {n: heads[n] for n in staying if n in heads}
        self._settled += _PATIENCE * max(self._leases(heads), default=0.0)

    def _leases(self, heads: Mapping[int, Contents]) -> Iterator[float]:
        """Yield the leases of servers that may still answer: one that wrote or released had waited for all before."""
        for number in sorted(heads, reverse=True):
            head = heads[number]
            if head.note.released:
                return
            yield self._lease if head.note.lease is None else head.note.lease
            if not head.is_opening:
                return

    def _made(self, said: Sequence[tuple[Item, memoryview | None]], note: Note) -> Contents | None:
        """Make the next commit, and return it once it is there; None if another's is. Raises StateUnknown, Denied."""
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
        """Return whether the next commit is ours, or another's; None if unknown. Raises Denied on the `first` try."""
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
        except Exists:  # or so it says: S3 may tell all of several that race that they lost, and nothing is there
            token = self._token_at(self.next)
            return None if token is None else token == self._token
        return True

    def _token_at(self, number: int) -> str | None:
        """Return the token of the commit of a number; None if it is free. Raises OSError."""
        try:
            return read_head(self._objects, number).token
        except Missing:
            return None
        except Damaged:
            return ""


class ExclusiveWriter:
    """Writer of commits to objects that are exclusively ours, by a lock: failed writes can be undone."""

    def __init__(self, objects: Objects, place: str) -> None:
        self._objects, self._place = objects, place
        self.next = 1
        self._failed: set[str] = set()  # tokens of objects that may have got the next number in spite of an error
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
        """Make the next object. An object that is there already may be a failed one of ours, which is removed.

        Any other one is by a server that ignores the lock.
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
        """Remove an object that a failed write left under the next number; return the token of any object there."""
        try:
            token = read_head(self._objects, self.next).token
        except (Missing, Damaged):
            return None
        if token in self._failed:
            self._objects.delete([commit_key(self.next)])
        return token
