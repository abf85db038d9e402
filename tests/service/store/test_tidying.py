"""Whatever is deleted and moved, and wherever a crash stops it, the state is the same."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.store.object_journal import Ledger, ObjectJournal, Tidiness, put_hold
from service.store.objects import Data
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import EAGER, LAZY, after, answer, commits, ended, journal, put, tensor, values

FAR = time.time() + 1e6


class Crashing(MemoryObjects):
    """Keeps what a crash might have left after each operation: for a deletion of several, half of them as well."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[MemoryObjects] = []

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        super().put_new(key, data)
        self._remember()

    def delete(self, keys: Sequence[str]) -> None:
        for half in (keys[::2], keys[1::2]):  # a crash may lose either: they reach the disk in any order
            state = MemoryObjects()
            state._kept = {key: data for key, data in self._kept.items() if key not in half}
            self.left.append(state)
        super().delete(keys)
        self._remember()

    def _remember(self) -> None:
        state = MemoryObjects()
        state._kept = dict(self._kept)
        self.left.append(state)


class Waiting(ObjectJournal):
    """A journal that has tidied when a commit returns, so that every run is the same."""

    def commit(self, batch: object) -> None:
        super().commit(batch)  # type: ignore[arg-type]
        if self._tidied is not None:
            self._tidied.result()


CHANGES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(1, 200))), min_size=1, max_size=4
)


@pytest.mark.slow
@given(st.lists(CHANGES, max_size=25))
def test_every_crash_leaves_the_state_before_or_after_a_commit(history: list[list[tuple[str, int | None]]]) -> None:
    objects = Crashing()
    tidied = Waiting(objects, "the place", EAGER)
    tidied.load()
    expected: dict[str, float] = {}
    for number, changes in enumerate(history):
        before = dict(expected)
        for name, count in changes:
            expected[name] = number
            if count is None:
                del expected[name]
        objects.left.clear()
        tidied.commit(put(*(ended(n) if c is None else tensor(n, number, c) for n, c in changes)))
        found = [values(after(state)) for state in objects.left]
        assert all(state in (before, expected) for state in found)
        assert values(after(objects)) == expected
    objects.left.clear()
    tidied.close()
    assert all(values(after(state)) == expected for state in objects.left)


@pytest.mark.slow
def test_one_tensor_rewritten_leaves_little(tmp_path: Path) -> None:
    opened = journal(tmp_path / "state", Tidiness(), Waiting)
    opened.load()
    most = 0
    for value in range(3000):
        opened.commit(put(tensor("w", value, 100)))
        most = max(most, len(list((tmp_path / "state/commits").iterdir())) if value % 50 == 0 else 0)
    opened.close()
    assert most < 1500
    assert len(list((tmp_path / "state/commits").iterdir())) == 1


def test_deleted_names_leave_nothing(tmp_path: Path) -> None:
    opened = journal(tmp_path / "state", EAGER)
    opened.load()
    opened.commit(put(tensor("first", 1)))
    for value in range(200):
        opened.commit(put(tensor(f"t{value}", value)))
        opened.commit(put(ended(f"t{value}")))
    opened.close()
    assert len(list((tmp_path / "state/commits").iterdir())) <= 3


def test_large_values_do_not_stay_for_a_small_answer() -> None:
    """An answer lives for ten minutes; the tensors beside it are replaced long before."""
    objects = MemoryObjects()
    tidied = Waiting(objects, "the place", Tidiness(worn_bytes=1 << 20))
    tidied.load()
    for value in range(60):
        tidied.commit(put(tensor("w", value, 25_000), answers=[answer(f"k{value}", FAR)]))
    held = sum(len(objects.get(key)) for key in objects.list("commits/"))
    assert held < 4 << 20
    loaded = after(objects)
    assert len(loaded.answers) == 60
    assert values(loaded) == {"w": 59}
    tidied.close()


def test_many_small_objects_become_few() -> None:
    objects = MemoryObjects()
    tidied = Waiting(objects, "the place", Tidiness(small_objects=100))
    tidied.load()
    for value in range(1000):
        tidied.commit(put(tensor(f"t{value}", value)))
    assert len(commits(objects)) < 220
    assert values(after(objects)) == {f"t{value}": value for value in range(1000)}
    tidied.close()


def test_what_is_over_is_deleted() -> None:
    ledger = Ledger(Tidiness())
    from service.store.commit_objects import items_of

    said = items_of(put(answers=[answer("k", 50.0)]), 1)
    ledger.note(1, 100, [item for item, _ in said.values()])
    ledger.expire(49.0)
    assert ledger.dead() == []
    ledger.expire(50.0)
    assert ledger.dead() == [1]


def test_nothing_is_deleted_during_a_backup() -> None:
    objects = MemoryObjects()
    tidied = Waiting(objects, "the place", EAGER)
    tidied.load()
    tidied.commit(put(tensor("a", 1)))
    before = set(commits(objects))
    hold = put_hold(objects, 100)
    for value in range(2, 12):
        tidied.commit(put(tensor("a", value)))
    assert before < set(commits(objects))
    assert len(commits(objects)) >= 12
    objects.delete([hold])
    tidied.commit(put(tensor("a", 99)))
    assert len(commits(objects)) <= 3
    assert values(after(objects)) == {"a": 99}


def test_a_backup_that_was_killed_does_not_hold_for_ever() -> None:
    objects = MemoryObjects()
    tidied = Waiting(objects, "the place", EAGER)
    tidied.load()
    put_hold(objects, -1)
    for value in range(12):
        tidied.commit(put(tensor("a", value)))
    assert len(commits(objects)) <= 3
    assert list(objects.list("holds/")) == []


def test_what_cannot_be_deleted_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    objects = MemoryObjects()
    tidied = Waiting(objects, "the place", EAGER)
    tidied.load()

    def refused(_: object) -> None:
        raise OSError(13, "not allowed")

    monkeypatch.setattr(objects, "delete", refused)
    with caplog.at_level(logging.WARNING, "gradserve.state"):
        for value in range(12):
            tidied.commit(put(tensor("a", value)))
    (line,) = caplog.messages
    assert line == "what is not current any more in the place stays there for now: [Errno 13] not allowed"
    assert values(after(objects)) == {"a": 11}


def test_what_is_replaced_while_it_is_moved_is_not_brought_back(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = MemoryObjects()
    tidied = ObjectJournal(objects, "the place", Tidiness(small_objects=3))
    tidied.load()
    for name in "abc":
        tidied.commit(put(tensor(name, 1)))
    real, replaced = objects.get, []

    def slowly(*arguments: object) -> bytes:
        found = real(*arguments)  # type: ignore[arg-type]
        if not replaced:
            replaced.append(True)
            tidied.commit(put(tensor("a", 99)))
        return found

    monkeypatch.setattr(objects, "get", slowly)
    tidied.commit(put(tensor("d", 1)))
    assert tidied._tidied is not None
    tidied._tidied.result()
    tidied.close()
    assert replaced
    assert values(after(objects)) == {"a": 99, "b": 1, "c": 1, "d": 1}


def test_a_server_that_ends_waits_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.object_journal._DELETED_AT_ONCE", 3)
    objects = MemoryObjects()
    tidied = ObjectJournal(objects, "the place", LAZY)
    tidied.load()
    for value in range(20):
        tidied.commit(put(tensor("a", value)))
    tidied.close()
    tidied.close()
    assert 21 - 2 * 3 <= len(commits(objects)) < 21


def test_who_writes_faster_than_can_be_deleted_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = MemoryObjects()
    tidied = ObjectJournal(objects, "the place", Tidiness(dead_objects=2))
    tidied.load()
    begun, go_on, written = Event(), Event(), []
    real = objects.delete

    def slowly(keys: Sequence[str]) -> None:
        begun.set()
        assert go_on.wait(60)
        real(keys)

    def write() -> None:
        for value in range(200):
            tidied.commit(put(tensor("a", value)))
            written.append(value)

    monkeypatch.setattr(objects, "delete", slowly)
    writing = Thread(target=write)
    writing.start()
    assert begun.wait(60)
    writing.join(0.3)
    assert len(written) <= 32, "2 times 16, and the one that stands"
    go_on.set()
    writing.join()
    tidied.close()
    assert values(after(objects)) == {"a": 199}


def test_what_is_damaged_is_not_moved() -> None:
    """A flipped byte is not given a new checksum."""
    objects = MemoryObjects()
    tidied = Waiting(objects, "the place", Tidiness(small_objects=3))
    tidied.load()
    tidied.commit(put(tensor("a", 1)))
    (key,) = (key for key in objects.list("commits/") if key.endswith("2"))
    whole = objects._kept[key]
    objects._kept[key] = whole[:-1] + bytes([whole[-1] ^ 1])
    for value in range(6):
        tidied.commit(put(tensor(f"b{value}", value)))
    tidied.close()
    with pytest.raises(RuntimeError, match=f"{key} does not have the bytes that were written of its tensor"):
        after(objects)
