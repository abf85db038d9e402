"""Tidying: deleting and moving objects never changes the state, even if a crash interrupts it."""

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


class CrashRecorder(MemoryObjects):
    """Objects that record each state a crash could leave, including half of a deletion of several."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[MemoryObjects] = []

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        super().put_new(key, data)
        self._record()

    def delete(self, keys: Sequence[str]) -> None:
        for half in (keys[::2], keys[1::2]):  # they may reach the disk in any order
            state = MemoryObjects()
            state._kept = {key: data for key, data in self._kept.items() if key not in half}
            self.states.append(state)
        super().delete(keys)
        self._record()

    def _record(self) -> None:
        state = MemoryObjects()
        state._kept = dict(self._kept)
        self.states.append(state)


class TidyJournal(ObjectJournal):
    """Journal that finishes tidying before a commit returns, so that runs are deterministic."""

    def commit(self, batch: object) -> None:
        super().commit(batch)  # type: ignore[arg-type]
        if self._tidied is not None:
            self._tidied.result()


CHANGES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(1, 200))), min_size=1, max_size=4
)


@pytest.mark.slow
@given(st.lists(CHANGES, max_size=25))
def test_crash_leaves_the_state_before_or_after_a_commit(history: list[list[tuple[str, int | None]]]) -> None:
    objects = CrashRecorder()
    opened = TidyJournal(objects, "the place", EAGER)
    opened.load()
    expected: dict[str, float] = {}
    for number, changes in enumerate(history):
        before = dict(expected)
        for name, count in changes:
            expected[name] = number
            if count is None:
                del expected[name]
        objects.states.clear()
        opened.commit(put(*(ended(n) if c is None else tensor(n, number, c) for n, c in changes)))
        crashed = [values(after(state)) for state in objects.states]
        assert all(state in (before, expected) for state in crashed)
        assert values(after(objects)) == expected
    objects.states.clear()
    opened.close()
    assert all(values(after(state)) == expected for state in objects.states)


@pytest.mark.slow
def test_rewriting_one_tensor_leaves_few_files(tmp_path: Path) -> None:
    opened = journal(tmp_path / "state", Tidiness(), TidyJournal)
    opened.load()
    max_files = 0
    for value in range(3000):
        opened.commit(put(tensor("w", value, 100)))
        max_files = max(max_files, len(list((tmp_path / "state/commits").iterdir())) if value % 50 == 0 else 0)
    opened.close()
    assert max_files < 1500
    assert len(list((tmp_path / "state/commits").iterdir())) == 1


def test_deleted_names_leave_few_files(tmp_path: Path) -> None:
    opened = journal(tmp_path / "state", EAGER)
    opened.load()
    opened.commit(put(tensor("first", 1)))
    for value in range(200):
        opened.commit(put(tensor(f"t{value}", value)))
        opened.commit(put(ended(f"t{value}")))
    opened.close()
    assert len(list((tmp_path / "state/commits").iterdir())) <= 3


def test_small_answer_does_not_retain_large_values() -> None:
    """An answer is stored for ten minutes, much longer than the tensors of its commit."""
    objects = MemoryObjects()
    opened = TidyJournal(objects, "the place", Tidiness(worn_bytes=1 << 20))
    opened.load()
    for value in range(60):
        opened.commit(put(tensor("w", value, 25_000), answers=[answer(f"k{value}", FAR)]))
    stored_bytes = sum(len(objects.get(key)) for key in objects.list("commits/"))
    assert stored_bytes < 4 << 20
    loaded = after(objects)
    assert len(loaded.answers) == 60
    assert values(loaded) == {"w": 59}
    opened.close()


def test_small_objects_are_merged() -> None:
    objects = MemoryObjects()
    opened = TidyJournal(objects, "the place", Tidiness(small_objects=100))
    opened.load()
    for value in range(1000):
        opened.commit(put(tensor(f"t{value}", value)))
    assert len(commits(objects)) < 220
    assert values(after(objects)) == {f"t{value}": value for value in range(1000)}
    opened.close()


def test_expired_commit_is_dead() -> None:
    ledger = Ledger(Tidiness())
    from service.store.commit_objects import items_of

    items = items_of(put(answers=[answer("k", 50.0)]), 1)
    ledger.note(1, 100, [item for item, _ in items.values()])
    ledger.expire(49.0)
    assert ledger.dead() == []
    ledger.expire(50.0)
    assert ledger.dead() == [1]


def test_backup_hold_prevents_deletion() -> None:
    objects = MemoryObjects()
    opened = TidyJournal(objects, "the place", EAGER)
    opened.load()
    opened.commit(put(tensor("a", 1)))
    before = set(commits(objects))
    hold = put_hold(objects, 100)
    for value in range(2, 12):
        opened.commit(put(tensor("a", value)))
    assert before < set(commits(objects))
    assert len(commits(objects)) >= 12
    objects.delete([hold])
    opened.commit(put(tensor("a", 99)))
    assert len(commits(objects)) <= 3
    assert values(after(objects)) == {"a": 99}


def test_hold_of_a_killed_backup_expires() -> None:
    objects = MemoryObjects()
    opened = TidyJournal(objects, "the place", EAGER)
    opened.load()
    put_hold(objects, -1)
    for value in range(12):
        opened.commit(put(tensor("a", value)))
    assert len(commits(objects)) <= 3
    assert list(objects.list("holds/")) == []


def test_failed_deletion_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    objects = MemoryObjects()
    opened = TidyJournal(objects, "the place", EAGER)
    opened.load()

    def refused(_: object) -> None:
        raise OSError(13, "not allowed")

    monkeypatch.setattr(objects, "delete", refused)
    with caplog.at_level(logging.WARNING, "gradserve.state"):
        for value in range(12):
            opened.commit(put(tensor("a", value)))
    (line,) = caplog.messages
    assert line == "cannot delete outdated data in the place yet: [Errno 13] not allowed"
    assert values(after(objects)) == {"a": 11}


def test_value_replaced_during_a_move_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = MemoryObjects()
    opened = ObjectJournal(objects, "the place", Tidiness(small_objects=3))
    opened.load()
    for name in "abc":
        opened.commit(put(tensor(name, 1)))
    original, replaced = objects.get, []

    def slowly(*arguments: object) -> bytes:
        data = original(*arguments)  # type: ignore[arg-type]
        if not replaced:
            replaced.append(True)
            opened.commit(put(tensor("a", 99)))
        return data

    monkeypatch.setattr(objects, "get", slowly)
    opened.commit(put(tensor("d", 1)))
    assert opened._tidied is not None
    opened._tidied.result()
    opened.close()
    assert replaced
    assert values(after(objects)) == {"a": 99, "b": 1, "c": 1, "d": 1}


def test_close_does_not_wait_for_all_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.object_journal._DELETED_AT_ONCE", 3)
    objects = MemoryObjects()
    opened = ObjectJournal(objects, "the place", LAZY)
    opened.load()
    for value in range(20):
        opened.commit(put(tensor("a", value)))
    opened.close()
    opened.close()
    assert 21 - 2 * 3 <= len(commits(objects)) < 21


def test_fast_writer_waits_for_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = MemoryObjects()
    opened = ObjectJournal(objects, "the place", Tidiness(dead_objects=2))
    opened.load()
    begun, resume, written = Event(), Event(), []
    original = objects.delete

    def slowly(keys: Sequence[str]) -> None:
        begun.set()
        assert resume.wait(60)
        original(keys)

    def write() -> None:
        for value in range(200):
            opened.commit(put(tensor("a", value)))
            written.append(value)

    monkeypatch.setattr(objects, "delete", slowly)
    writing = Thread(target=write)
    writing.start()
    assert begun.wait(60)
    writing.join(0.3)
    assert len(written) <= 32, "2 times 16, and the one that stands"
    resume.set()
    writing.join()
    opened.close()
    assert values(after(objects)) == {"a": 199}


def test_damaged_item_is_not_moved() -> None:
    """A flipped byte must not get a valid checksum."""
    objects = MemoryObjects()
    opened = TidyJournal(objects, "the place", Tidiness(small_objects=3))
    opened.load()
    opened.commit(put(tensor("a", 1)))
    (key,) = (key for key in objects.list("commits/") if key.endswith("2"))
    whole = objects._kept[key]
    objects._kept[key] = whole[:-1] + bytes([whole[-1] ^ 1])
    for value in range(6):
        opened.commit(put(tensor(f"b{value}", value)))
    opened.close()
    with pytest.raises(RuntimeError, match=f"{key} is corrupt: the checksum of its tensor"):
        after(objects)
