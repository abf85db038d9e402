"""Ownership of a place: the right to write the next commit, and to answer from the state.

`ExclusiveWriter` has a place to itself, by a lock. `LeaseWriter` takes a place that other servers reach as well, with
nothing but the object store between them: one server at a time writes and answers. Commits are numbered without gaps,
and each number is used once: the first server to create the object wins it. So all servers agree on the state up to
any number. The rest preserves that.

- A server begins with an *opening*, a commit without items, under the next number. The opening counts only if a list of
  the commits behind it, requested afterwards, is empty: otherwise the number may have been used before, by a commit
  that was deleted. The previous owner notices when it finds the number of its own next commit taken, and stops:

      5   commit of A
      6   opening of B       A tries to write 6, finds it taken, and has lost the place
      7   commit of B

- A write without an answer is in *doubt*: it may have succeeded, or may still arrive. The same object is sent again,
  with its number and its token, until it is known to be there, or another server's object is. It is never undone:
  another server may have read it.
- A number is not freed while a write to it may still succeed. The opening stays, and so does the last commit. The
  commit before an opening may be by a server that does not know the opening yet, and a commit that was sent more than
  once may arrive again: of these, number and token stay, without the items (a *stub*).
- The next opening supersedes all that: it lists the commits before it that have items (`Past`), and nobody reads the
  others any more. So a commit that arrives late in their place changes nothing, and they can be deleted. That happens
  SUPERSEDED seconds later, because a server that knows nothing of an opening takes a free number for proof that there
  is none. Once its last look or commit is CERTAIN seconds ago, it does not: it lists what is behind the number as well.
- Memory is current as long as nobody else has written. A *look* finds out: is the next number free? Its result is valid
  for the time of a lease, and a successful commit counts as a look. A server that begins gives no answers until the
  leases of earlier owners are over, unless the last of them has released the place.
"""

from __future__ import annotations

import errno
import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from service.store.commit_objects import (
    COMMITS,
    Chain,
    Contents,
    Damaged,
    Item,
    Note,
    Past,
    Reading,
    Vanished,
    commit_key,
    encode_commit,
    read_head,
)
from service.store.contact import Contact
from service.store.journal import Environment, StateLost, StateUnknown
from service.store.objects import Data, Denied, Exists, Missing, Objects

#: seconds after an opening in which no other server opens the place, if it can ask the owner instead
OPENING_INTERVAL: Final = 5.0
#: seconds since its last look or commit after which a server lists what is behind a free number; and seconds after
#: which superseded commits are deleted. Clocks may differ by a fifth
CERTAIN: Final = 25.0
SUPERSEDED: Final = 30.0
#: number of leases that a server waits when it begins, for the same reason
_LEASES: Final = 1.2
#: number of leases without an answer of the store after which another server may take over, and seconds at least
_PATIENT_LEASES: Final = 3
_SHORTEST_PATIENCE: Final = 3.0
#: attempts of a server to open a place while another one keeps writing
_OPENING_ATTEMPTS: Final = 1000
#: seconds between two attempts of a write in doubt: at first, and at most
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
#: number of looks while a write of ours is in progress, and seconds after the first, which double
_LOOKS: Final = 8
_LOOK_PAUSE: Final = 0.02
_NEVER: Final = float("-inf")
_T = TypeVar("_T")

_logger = logging.getLogger("gradserve.state")


class Taken(Exception):
    """Another server, at the address `owner`, opened the place at `began`, in Unix seconds: ask that one."""

    def __init__(self, owner: str, began: float) -> None:
        super().__init__(owner, began)
        self.owner, self.began = owner, began


def patience_of(lease: float) -> float:
    """Return the seconds without an answer of the store after which another server may take over."""
    return max(_PATIENT_LEASES * lease, _SHORTEST_PATIENCE)


class Ownership(Protocol):
    """Right to write the next commit. All methods block; one thread writes, and another may look meanwhile."""

    next: int
    """The number of the next commit."""

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Take the place; return the heads of all commits so far, by their numbers.

        Those that are superseded are left out. Raises RuntimeError with one sentence, Taken, OSError.
        """

    def settle(self) -> None:
        """Return once no earlier owner can answer any more."""

    def write_items(self, pairs: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Write these items as the next commit. Raises StateLost, StateUnknown; after OSError, nothing was written."""

    def lease_left(self) -> float:
        """Return for how many seconds memory is known to be current without a look."""

    def look(self) -> None:
        """Check that nobody else has written. Raises StateLost, OSError."""

    def is_blind(self) -> bool:
        """Return whether the store has not answered for so long that another server should take over."""

    def superseded(self) -> Sequence[int]:
        """Return the numbers of superseded commits that may be deleted now."""

    def deleted(self, numbers: Iterable[int]) -> None:
        """Record that commits were deleted."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Return the stub that has to replace a commit without current items; None if the commit may be deleted."""

    def give_up(self) -> None:
        """Stop repeating a write in doubt."""

    def end(self, successor: str | None = None) -> None:
        """Leave the place to others, or to the server at `successor`. This server answers no more."""


def loss(place: str) -> StateLost:
    """Return the error that another server has taken the place, which messages call `place`."""
    return StateLost(f"another server writes to {place} now; this server has stopped writing to it")


class LeaseWriter:
    """Writer to a place that other servers reach, until another one takes it; a lease is in seconds."""

    def __init__(
        self, objects: Objects, place: str, lease: float, environment: Environment, owner: str | None = None
    ) -> None:
        """Set up without writing. `owner`: address in the commits, if other servers forward requests to the owner."""
        self._objects, self._place = objects, place
        self._lease, self._environment = lease, environment
        self._note = Note(lease, owner=owner)
        self.next = 1
        self._token = ""  # of the commit that is being written, or was written last
        self._resent = False  # whether the last commit was sent more than once
        self._stubs: dict[int, Contents] = {}  # commits whose numbers stay, without openings
        self._superseded: set[int] = set()
        self._looked = self._opened = self._settled = _NEVER
        self._looking, self._writing = (Contact(patience_of(lease), environment.now) for _ in range(2))
        self._lost = self._ended = self._gives_up = False

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Implement `Ownership.begin`."""
        heads: dict[int, Contents] = {}
        for _ in range(_OPENING_ATTEMPTS):
            with suppress(Vanished):  # the owner is tidying: read the list again
                chain = reading.chain()
                heads = {n: heads[n] for n in chain.valid if n in heads}
                heads |= reading.heads(n for n in chain.valid if n not in heads)
                if len(heads) < len(chain.valid):
                    continue
                self._respect_opening_interval(heads)
                if self._open(chain, heads, reading):
                    return heads
        raise RuntimeError(f"another server keeps writing to {self._place}; stop that server first")

    def settle(self) -> None:
        """Implement `Ownership.settle`: wait until the leases of earlier owners are over."""
        self._environment.sleep(max(0.0, self._settled - self._environment.now()))

    def write_items(self, pairs: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Implement `Ownership.write_items`."""
        if self._lost or self._ended:
            raise loss(self._place)
        if self._gives_up:
            raise StateUnknown
        before, looked = self._resent, self._looked
        with self._writing.attempt():
            contents = self._create_commit(pairs, replace(self._note, again=before))
        if contents is None:
            self._lost = True
            raise loss(self._place)
        if self._environment.now() - looked >= CERTAIN and self._until_answered(lambda: self._is_followed(self.next)):
            # Another server has opened the place. Whether it did so before this commit, and without it, is not known.
            self._lost = True
            raise StateUnknown
        # Its number has to stay if it may arrive again, and if its note tells later owners that the one before may.
        if self._resent or before:
            self._stubs[self.next] = contents
        self.next += 1
        return contents

    def lease_left(self) -> float:
        """Implement `Ownership.lease_left`: the lease begins with the last look or successful commit."""
        if self._lost or self._ended:
            return 0.0
        return max(0.0, self._lease - (self._environment.now() - self._looked))

    def look(self) -> None:
        """Implement `Ownership.look`. The next number may hold a commit of ours that has not been answered yet."""
        for turn in range(_LOOKS):
            if self._lost or self._ended:
                break
            number, began = self.next, self._environment.now()
            with self._looking.attempt():
                token = self._token_at(number)
                is_followed = began - self._looked >= CERTAIN and self._is_followed(number)
            if is_followed and number == self.next:
                self._lost = True
                break
            if token is None:
                # The lease counts from before the look: another server may write as soon as it is done.
                self._looked = max(self._looked, began)
                return
            if number == self.next and token != self._token:
                self._lost = True
                break
            self._environment.sleep(_LOOK_PAUSE * 2**turn)
            if self._looked >= began:
                return
        if self._lost or self._ended:
            raise loss(self._place)
        raise OSError(errno.EBUSY, "the outcome of the last commit is not known yet")

    def is_blind(self) -> bool:
        """Implement `Ownership.is_blind`: only if servers forward requests, so that another one can take over."""
        return self._note.owner is not None and (self._looking.is_lost or self._writing.is_lost)

    def superseded(self) -> Sequence[int]:
        """Implement `Ownership.superseded`."""
        is_time = self._environment.now() - self._opened >= SUPERSEDED
        return sorted(self._superseded) if is_time else ()

    def deleted(self, numbers: Iterable[int]) -> None:
        """Implement `Ownership.deleted`."""
        self._superseded.difference_update(numbers)

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Implement `Ownership.stub`: the commit without its items, if its number has to stay."""
        head = self._stubs.get(sequence)
        return None if head is None else encode_commit(sequence, head.token, (), replace(head.note, emptied=True))[0]

    def give_up(self) -> None:
        """Implement `Ownership.give_up`."""
        self._gives_up = True

    def end(self, successor: str | None = None) -> None:
        """Implement `Ownership.end`: release the place by a commit, sent once, so that the next owner need not wait."""
        self._ended = True
        if not self._lost and not self._gives_up:
            note = replace(self._note, lease=None, again=self._resent, released=True)
            if successor is not None:
                note = replace(note, successor=successor, began=self._environment.today())
            parts, _ = encode_commit(self.next, secrets.token_hex(8), (), note)
            with suppress(OSError, Exists):
                self._objects.put_new(commit_key(self.next), parts)

    def _respect_opening_interval(self, heads: Mapping[int, Contents]) -> None:
        """Raise Taken if another server has just opened the place: else both would take it from each other in turn."""
        note = heads[max(heads)].note if heads else self._note
        if note.released or note.began is None or None in (note.owner, self._note.owner):
            return
        if note.owner != self._note.owner and 0 <= self._environment.today() - note.began < OPENING_INTERVAL:
            raise Taken(str(note.owner), note.began)

    def _open(self, chain: Chain, heads: Mapping[int, Contents], reading: Reading) -> bool:
        """Write an opening behind these commits; return whether nothing is behind it."""
        self.next = number = max(chain.listed, default=0) + 1
        past = self._past(chain, heads)
        self._note = replace(self._note, opening=number)
        if self._note.owner is not None:
            self._note = replace(self._note, began=self._environment.today())
        if self._create_commit((), replace(self._note, past=past)) is None:
            return False
        self._opened = self._environment.now()
        self._resent = False  # an opening's number stays in any case
        self.next += 1
        if reading.sequences(after=number):
            return False
        self._settled = self._opened + _LEASES * past.lease
        self._stubs = {n: heads[n] for n in past.fixed}
        self._superseded = {n for n in chain.listed if n > past.floor}.difference(past.live)
        return True

    def _past(self, chain: Chain, heads: Mapping[int, Contents]) -> Past:
        """Determine what the opening with the next number says about the commits before it."""
        live = {n for n, head in heads.items() if head.items}
        opened = {n for n, head in heads.items() if head.is_opening} | {self.next}
        after_resent = {n for n, head in heads.items() if head.note.again}
        fixed = after_resent | {n - 1 for n in opened | after_resent}
        floor = self.next if chain.listed else 0
        if chain.past is not None:
            fixed |= {*chain.past.fixed}
            floor = chain.past.floor
        return Past(tuple(sorted(live)), tuple(sorted(fixed & live)), max(self._leases(heads), default=0.0), floor)

    def _leases(self, heads: Mapping[int, Contents]) -> Iterator[float]:
        """Yield the leases of servers that may still answer; one that wrote or released had waited for the others."""
        for number in sorted(heads, reverse=True):
            note = heads[number].note
            if note.released:
                return
            yield self._lease if note.lease is None else note.lease
            if note.past is not None:
                yield note.past.lease
            if note.past is not None or not heads[number].is_opening:
                return

    def _is_followed(self, number: int) -> bool:
        """Return whether there are commits behind a number. Raises OSError."""
        key = commit_key(number)
        return any(listed > key for listed in self._objects.list(COMMITS, key))

    def _until_answered(self, ask: Callable[[], _T]) -> _T:
        """Return the answer of the store to a question, which is repeated. Raises StateUnknown."""
        pause = _FIRST_PAUSE
        while not self._gives_up:
            with suppress(OSError):
                return ask()
            self._environment.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise StateUnknown

    def _create_commit(self, pairs: Sequence[tuple[Item, memoryview | None]], note: Note) -> Contents | None:
        """Write the next commit, and return it; None if the number is another server's. Raises StateUnknown, Denied."""
        token = secrets.token_hex(8)
        parts, contents = encode_commit(self.next, token, pairs, note)
        began, pause, tries = self._environment.now(), _FIRST_PAUSE, 1
        self._token = token
        while (ours := self._try_create(parts, first=tries == 1)) is None:
            if self._gives_up:
                raise StateUnknown
            self._environment.sleep(pause)
            pause, tries = min(2 * pause, _LONGEST_PAUSE), tries + 1
        if not ours:
            return None
        self._resent = tries > 1
        self._looked = max(self._looked, began)
        return contents

    def _try_create(self, parts: Sequence[Data], *, first: bool) -> bool | None:
        """Return whether the next commit is ours, or None if unknown. Raises Denied on the `first` attempt."""
        try:
            return self._send(parts)
        except Denied:
            if first:
                raise
        except OSError as error:
            if first:
                message = "%s did not confirm commit %d, so the server asks again: %s"
                _logger.warning(message, self._place, self.next, error.strerror or error)
        return None

    def _send(self, parts: Sequence[Data]) -> bool | None:
        """Send the next commit; return as `_try_create` does. Raises OSError."""
        try:
            self._objects.put_new(commit_key(self.next), parts)
        except Exists:  # S3 may report a conflict to all of several racing writers, with no object left there
            token = self._token_at(self.next)
            return None if token is None else token == self._token
        return True

    def _token_at(self, number: int) -> str | None:
        """Return the token of the commit with this number; None if the number is free. Raises OSError."""
        try:
            return read_head(self._objects, number).token
        except Missing:
            return None
        except Damaged:
            return ""


class ExclusiveWriter:
    """Writer to objects that only this server can reach, by a lock: so failed writes can be undone."""

    def __init__(self, objects: Objects, place: str) -> None:
        self._objects, self._place = objects, place
        self.next = 1
        self._failed: set[str] = set()  # tokens of objects that may exist under the next number in spite of an error
        self._lost = False

    def begin(self, reading: Reading) -> dict[int, Contents]:
        """Implement `Ownership.begin`: nobody else adds commits."""
        heads = reading.heads(reading.sequences())
        self.next = max(heads, default=0) + 1
        return heads

    def settle(self) -> None:
        """Implement `Ownership.settle`: there are no other servers."""

    def write_items(self, pairs: Sequence[tuple[Item, memoryview | None]]) -> Contents:
        """Implement `Ownership.write_items`."""
        if self._lost:
            raise loss(self._place)
        token = secrets.token_hex(8)
        parts, contents = encode_commit(self.next, token, pairs)
        try:
            self._create(parts, token)
        except OSError:
            self._failed.add(token)
            with suppress(OSError):  # the next commit tries it again
                self._withdraw()
            raise
        self.next += 1
        self._failed.clear()
        return contents

    def lease_left(self) -> float:
        """Implement `Ownership.lease_left`: for ever."""
        return float("inf")

    def look(self) -> None:
        """Implement `Ownership.look`: there is nothing to check."""

    def is_blind(self) -> bool:
        """Implement `Ownership.is_blind`: never, since no other server could take over."""
        return False

    def superseded(self) -> Sequence[int]:
        """Implement `Ownership.superseded`: there are no openings."""
        return ()

    def deleted(self, numbers: Iterable[int]) -> None:
        """Implement `Ownership.deleted`."""

    def stub(self, sequence: int) -> Sequence[Data] | None:
        """Implement `Ownership.stub`: no number has to stay."""
        return None

    def give_up(self) -> None:
        """Implement `Ownership.give_up`: nothing is repeated."""

    def end(self, successor: str | None = None) -> None:
        """Implement `Ownership.end`: the lock is released with the objects."""

    def _create(self, parts: Sequence[Data], token: str) -> None:
        """Create the next object. If one is there already, it may be a failed one of ours, which is deleted.

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
        """Delete an object that a failed write left under the next number; return the token of any object there."""
        try:
            token = read_head(self._objects, self.next).token
        except (Missing, Damaged):
            return None
        if token in self._failed:
            self._objects.delete([commit_key(self.next)])
        return token
