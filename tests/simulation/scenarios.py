"""What some rules are for, step by step, as few histories go wrong without them. Each asserts what has to hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from service.store.journal import StateLost
from service.store.object_journal import ObjectJournal
from service.store.objects import Data, Exists
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import EAGER, after, answer, ended, put, tensor, values


class _Network(MemoryObjects):
    """Objects, and what happens to the next commit on its way to them, or on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.there: Callable[[str, Sequence[Data]], None] | None = None
        self.back: Callable[[], None] | None = None

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        there, self.there = self.there, None
        if there is not None:
            there(key, data)
        super().put_new(key, data)
        back, self.back = self.back, None
        if back is not None:
            back()


def _tidied(journal: ObjectJournal, *writes: object) -> None:
    journal.commit(put(*writes))  # type: ignore[arg-type]
    if journal._tidied is not None:
        journal._tidied.result()


def _ends(journal: ObjectJournal, name: str) -> None:
    """End a tensor, and write on until nothing of it is left."""
    _tidied(journal, ended(name))
    for value in range(4):
        _tidied(journal, tensor("other", value))


def _begun(objects: MemoryObjects, lease: float = 0.0) -> ObjectJournal:
    journal = ObjectJournal(objects, "the place", EAGER, lease)
    journal.load()
    return journal


def what_is_in_doubt_is_not_made_again() -> None:
    """A successor has read a commit whose writer does not know that it was made, and ended what it says."""
    objects = _Network()
    first = _begun(objects)

    def lost() -> None:
        _ends(_begun(objects), "w")
        raise OSError(5, "the answer is lost")

    objects.back = lost
    first.commit(put(tensor("w", 1)))
    assert "w" not in values(after(objects))


def what_is_sent_twice_does_not_come_back() -> None:
    """The first of two requests arrives when what the second has made is ended and gone."""
    objects = _Network()
    journal = _begun(objects)
    late: list[tuple[str, Sequence[Data]]] = []

    def is_late(key: str, data: Sequence[Data]) -> None:
        late.append((key, data))
        raise OSError(5, "no answer came in time")

    objects.there = is_late
    _tidied(journal, tensor("w", 1))
    _ends(journal, "w")
    with suppress(Exists):
        objects.put_new(*late[0])
    assert "w" not in values(after(objects))


def the_last_number_is_not_given_twice() -> None:
    """All that a server has written is over; the next must not begin where the first has been already."""
    objects = MemoryObjects()
    first = _begun(objects)
    for key in "abc":
        first.commit(put(answers=[answer(key, time.time() - 1)]))
        assert first._tidied is not None
        first._tidied.result()
    second = _begun(objects)
    with suppress(StateLost):
        first.commit(put(tensor("w", 1)))
        raise AssertionError("two servers have the place")
    second.close()


def who_released_the_place_does_not_answer() -> None:
    """The next server does not wait for the lease of the one before."""
    journal = _begun(MemoryObjects(), lease=1e6)
    journal.commit(put(tensor("w", 1)))
    assert journal.holds()
    journal.close()
    assert not journal.holds()
