"""The claim to a place that other servers reach as well: one of them writes and answers."""

from __future__ import annotations

import errno
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from service.state.items import Item
from service.state.journal import StateUnknown
from service.state.objects import Data, Denied, Exists, Missing, Objects
from service.state.ownership import Taken, loss
from service.state.packing import Contents, Damaged, Note, encoded
from service.state.reading import Reading, commit_key, read_head
from service.state.surroundings import Surroundings

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


class Tenure:
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
