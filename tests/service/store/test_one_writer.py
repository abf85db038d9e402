"""Several servers at one place that nothing locks: one of them writes and answers, whatever becomes of requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import pytest

from service.store.commit_objects import commit_key
from service.store.journal import StateLost
from service.store.object_journal import ObjectJournal
from service.store.objects import Data
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import EAGER, LAZY, after, answer, commits, put, tensor, values


class View:
    """One server's view of a store that others see as well: what happens on the way can be staged."""

    exclusive = False

    def __init__(self, kept: MemoryObjects) -> None:
        self.kept = kept
        self.before_put: Callable[[], None] | None = None
        self.after_put: Callable[[], None] | None = None
        self.before_get: Callable[[], None] | None = None

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        self._stage("before_get")
        return self.kept.get(key, start, stop)

    def put(self, key: str, data: Sequence[Data]) -> None:
        self.kept.put(key, data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        self._stage("before_put")
        self.kept.put_new(key, data)
        self._stage("after_put")

    def delete(self, keys: Sequence[str]) -> None:
        self.kept.delete(keys)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        return [key for key in self.kept.list(prefix) if key > after]

    def close(self) -> None:
        pass

    def _stage(self, name: str) -> None:
        staged: Callable[[], None] | None = getattr(self, name)
        setattr(self, name, None)
        if staged is not None:
            staged()


class Tidied(ObjectJournal):
    """A journal that has tidied when a commit returns."""

    def commit(self, batch: object) -> None:
        super().commit(batch)  # type: ignore[arg-type]
        if self._tidied is not None:
            self._tidied.result()


@pytest.fixture
def kept() -> MemoryObjects:
    return MemoryObjects()


def lost() -> None:
    raise OSError(5, "the answer is lost")


def test_a_number_is_not_used_twice(kept: MemoryObjects) -> None:
    """While a server begins, the other takes 200 steps, and tidies away the number that was to be the opening."""
    first = Tidied(View(kept), "the place", EAGER)
    first.load()
    first.commit(put(tensor("w", 1)))

    def steps() -> None:
        for step in range(200):
            first.commit(put(tensor("u", step)))

    view = View(kept)
    view.before_put = steps
    second = ObjectJournal(view, "the place", LAZY)
    assert values(second.load()) == {"w": 1, "u": 199}
    second.commit(put(tensor("w", 251)))
    with pytest.raises(StateLost):
        first.commit(put(tensor("w", 252)))
    assert values(after(kept)) == {"w": 251, "u": 199}


def test_what_a_successor_has_read_stays(kept: MemoryObjects) -> None:
    """The answer of a write is lost, and another server begins before it is asked for again."""
    view = View(kept)
    first = ObjectJournal(view, "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    second = ObjectJournal(View(kept), "the place", LAZY)
    shown = []

    def successor() -> None:
        shown.append(values(second.load()))
        lost()

    view.after_put = successor
    with suppress(OSError, StateLost):
        first.commit(put(tensor("w", 2)))
    assert shown == [{"w": 2}]
    assert values(after(kept)) == {"w": 2}


def test_a_server_in_doubt_writes_no_second_commit_of_a_number(kept: MemoryObjects) -> None:
    """Nor does it acknowledge anything beside its successor."""
    view = View(kept)
    first = ObjectJournal(view, "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    view.after_put = lost
    view.before_get = lost
    with suppress(OSError):
        first.commit(put(tensor("w", 2)))
    second = ObjectJournal(View(kept), "the place", LAZY)
    assert values(second.load()) == {"w": 2}
    second.commit(put(tensor("v", 7)))
    with pytest.raises(StateLost):
        first.commit(put(tensor("w", 3)))
    second.commit(put(tensor("w", 4)))
    assert values(after(kept)) == {"w": 4, "v": 7}


def test_a_write_whose_answer_is_lost_is_known_in_the_end(kept: MemoryObjects) -> None:
    view = View(kept)
    journal = ObjectJournal(view, "the place", LAZY)
    journal.load()
    view.after_put = lost
    journal.commit(put(tensor("w", 2)))
    assert values(after(kept)) == {"w": 2}


def test_a_commit_that_vanishes_while_it_is_read_is_not_damaged(kept: MemoryObjects) -> None:
    """An answer was over by the clock of the server before, whose deletion comes when this one has listed it."""
    first = ObjectJournal(View(kept), "the place", LAZY)
    first.load()
    first.commit(put(answers=[answer("k", time.time() + 1e6)]))
    first.commit(put(tensor("w", 2)))
    view = View(kept)
    view.after_put = lambda: kept.delete([commit_key(2)])
    loaded = ObjectJournal(view, "the place", LAZY).load()
    assert values(loaded) == {"w": 2}
    assert loaded.answers == []


def test_what_lies_before_an_opening_keeps_its_number(kept: MemoryObjects) -> None:
    """Or its writer, in doubt until now, would make it again."""
    first = ObjectJournal(View(kept), "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    second = Tidied(View(kept), "the place", EAGER)
    second.load()
    for value in range(2, 20):
        second.commit(put(tensor("w", value)))
    assert {1, 2, 3} <= set(commits(kept)), "an opening, what lies before the next, and that"
    assert len(commits(kept)) == 4


def test_a_server_that_lost_its_place_does_not_take_its_memory_for_the_state(kept: MemoryObjects) -> None:
    first = ObjectJournal(View(kept), "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    second = ObjectJournal(View(kept), "the place", LAZY)
    second.load()
    second.commit(put(tensor("w", 2)))
    assert not first.holds()
    with pytest.raises(StateLost):
        first.look()
