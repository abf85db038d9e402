"""Several servers at one place without a lock: only one writes and answers, even if requests are lost."""

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
    """One server's view of a shared store, with callbacks that interfere with requests."""

    exclusive = False

    def __init__(self, store: MemoryObjects) -> None:
        self.store = store
        self.before_put: Callable[[], None] | None = None
        self.after_put: Callable[[], None] | None = None
        self.before_get: Callable[[], None] | None = None

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        self._stage("before_get")
        return self.store.get(key, start, stop)

    def put(self, key: str, data: Sequence[Data]) -> None:
        self.store.put(key, data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        self._stage("before_put")
        self.store.put_new(key, data)
        self._stage("after_put")

    def delete(self, keys: Sequence[str]) -> None:
        self.store.delete(keys)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        return [key for key in self.store.list(prefix) if key > after]

    def close(self) -> None:
        pass

    def _stage(self, name: str) -> None:
        staged: Callable[[], None] | None = getattr(self, name)
        setattr(self, name, None)
        if staged is not None:
            staged()


class TidyJournal(ObjectJournal):
    """Journal that finishes tidying before a commit returns."""

    def commit(self, batch: object) -> None:
        super().commit(batch)  # type: ignore[arg-type]
        if self._tidied is not None:
            self._tidied.result()


@pytest.fixture
def store() -> MemoryObjects:
    return MemoryObjects()


def lose_answer() -> None:
    raise OSError(5, "the answer is lost")


def test_number_is_not_reused_during_an_opening(store: MemoryObjects) -> None:
    """While a server opens the place, the other commits 200 times and deletes the number chosen for the opening."""
    first = TidyJournal(View(store), "the place", EAGER)
    first.load()
    first.commit(put(tensor("w", 1)))

    def steps() -> None:
        for step in range(200):
            first.commit(put(tensor("u", step)))

    view = View(store)
    view.before_put = steps
    second = ObjectJournal(view, "the place", LAZY)
    assert values(second.load()) == {"w": 1, "u": 199}
    second.commit(put(tensor("w", 251)))
    with pytest.raises(StateLost):
        first.commit(put(tensor("w", 252)))
    assert values(after(store)) == {"w": 251, "u": 199}


def test_commit_read_by_a_successor_is_preserved(store: MemoryObjects) -> None:
    """The answer to a write is lost, and another server opens the place before the write is repeated."""
    view = View(store)
    first = ObjectJournal(view, "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    second = ObjectJournal(View(store), "the place", LAZY)
    shown = []

    def successor() -> None:
        shown.append(values(second.load()))
        lose_answer()

    view.after_put = successor
    with suppress(OSError, StateLost):
        first.commit(put(tensor("w", 2)))
    assert shown == [{"w": 2}]
    assert values(after(store)) == {"w": 2}


def test_server_in_doubt_does_not_reuse_its_number(store: MemoryObjects) -> None:
    """Commits after its successor has opened the place are not acknowledged, either."""
    view = View(store)
    first = ObjectJournal(view, "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    view.after_put = lose_answer
    view.before_get = lose_answer
    with suppress(OSError):
        first.commit(put(tensor("w", 2)))
    second = ObjectJournal(View(store), "the place", LAZY)
    assert values(second.load()) == {"w": 2}
    second.commit(put(tensor("v", 7)))
    with pytest.raises(StateLost):
        first.commit(put(tensor("w", 3)))
    second.commit(put(tensor("w", 4)))
    assert values(after(store)) == {"w": 4, "v": 7}


def test_write_with_a_lost_answer_is_confirmed(store: MemoryObjects) -> None:
    view = View(store)
    journal = ObjectJournal(view, "the place", LAZY)
    journal.load()
    view.after_put = lose_answer
    journal.commit(put(tensor("w", 2)))
    assert values(after(store)) == {"w": 2}


def test_commit_deleted_during_load_is_not_damage(store: MemoryObjects) -> None:
    """The earlier server deletes an expired answer after this one has listed it."""
    first = ObjectJournal(View(store), "the place", LAZY)
    first.load()
    first.commit(put(answers=[answer("k", time.time() + 1e6)]))
    first.commit(put(tensor("w", 2)))
    view = View(store)
    view.after_put = lambda: store.delete([commit_key(2)])
    loaded = ObjectJournal(view, "the place", LAZY).load()
    assert values(loaded) == {"w": 2}
    assert loaded.answers == []


def test_commit_before_an_opening_is_preserved(store: MemoryObjects) -> None:
    """Otherwise its writer, still in doubt, would create it again."""
    first = ObjectJournal(View(store), "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    second = TidyJournal(View(store), "the place", EAGER)
    second.load()
    for value in range(2, 20):
        second.commit(put(tensor("w", value)))
    assert {1, 2, 3} <= set(commits(store)), "an opening, what lies before the next, and that"
    assert len(commits(store)) == 4


def test_memory_of_a_server_that_lost_its_place_is_stale(store: MemoryObjects) -> None:
    first = ObjectJournal(View(store), "the place", LAZY)
    first.load()
    first.commit(put(tensor("w", 1)))
    second = ObjectJournal(View(store), "the place", LAZY)
    second.load()
    second.commit(put(tensor("w", 2)))
    assert not first.holds()
    with pytest.raises(StateLost):
        first.look()
