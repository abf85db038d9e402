"""Journals load what was committed: every kind, in order, without expired answers, and after failures."""

from __future__ import annotations

import errno
import time

import pytest

from service.store.journal import Loaded, MemoryJournal, StateFull, StateLost
from service.store.object_journal import ObjectJournal, Tidiness, put_hold
from service.store.writes import Commit
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import (
    EAGER,
    LAZY,
    FailingObjects,
    after,
    answer,
    commits,
    ended,
    graph,
    model,
    put,
    tensor,
    values,
)

FAR = time.time() + 1e6


def opened(objects: MemoryObjects, tidiness: object = LAZY) -> ObjectJournal:
    journal = ObjectJournal(objects, "the place", tidiness)  # type: ignore[arg-type]
    journal.load()
    return journal


def test_new_place_is_empty() -> None:
    assert ObjectJournal(MemoryObjects(), "the place").load() == Loaded()


def test_all_kinds_are_loaded() -> None:
    objects = MemoryObjects()
    journal = opened(objects)
    batch = put(
        tensor("w", 2, 3, "ns"),
        graphs=[graph("g", b"[2]")],
        answers=[answer("k", FAR, b"[3]")],
        models=[model("m", b"[4]"), model("gone", None)],
    )
    journal.commit(batch)
    loaded = after(objects)
    (write,) = loaded.tensors
    assert (write.namespace, write.name, write.dtype, write.shape) == ("ns", "w", "float64", (3,))
    assert write.data is not None
    assert bytes(write.data) == bytes(batch[0].tensors[0].data or b"")
    assert loaded.graphs == list(batch[0].graphs)
    assert loaded.answers == list(batch[0].answers)
    assert loaded.models == [model("m", b"[4]")]


def test_last_value_is_loaded() -> None:
    objects = MemoryObjects()
    journal = opened(objects)
    for value in range(5):
        journal.commit(put(tensor("a", value), tensor(f"b{value}", value)))
    journal.commit([*put(tensor("a", 7)), *put(ended("b1"), ended("never"))])
    assert values(after(objects)) == {"a": 7, "b0": 0, "b2": 2, "b3": 3, "b4": 4}


def test_namespaces_are_separate() -> None:
    objects = MemoryObjects()
    journal = opened(objects)
    journal.commit(put(tensor("a", 1, namespace="x"), tensor("a", 2, namespace="y")))
    journal.commit(put(ended("a", "x")))
    assert [(write.namespace, write.name) for write in after(objects).tensors] == [("y", "a")]


def test_graphs_are_loaded_in_registration_order() -> None:
    objects = MemoryObjects()
    journal = opened(objects, EAGER)
    for number in (5, 3, 9, 1, 7, 2, 8):
        journal.commit(put(graphs=[graph(f"g{number}"), graph(f"h{number}")]))
    journal.commit(put(graphs=[graph("g3", None)]))
    journal.close()
    assert commits(objects) != list(range(1, 10)), "nothing was moved"
    order = [write.graph_id for write in after(objects).graphs]
    assert order == [
        f"{kind}{number}" for number in (5, 3, 9, 1, 7, 2, 8) for kind in "gh" if (kind, number) != ("g", 3)
    ]


def test_moved_graph_keeps_its_position() -> None:
    objects = MemoryObjects()
    journal = opened(objects, Tidiness(worn_bytes=1000))
    journal.commit(put(tensor("w", 1, 5000), graphs=[graph("first")]))
    journal.commit(put(graphs=[graph("second", b"x" * 5000)]))
    journal.commit(put(tensor("w", 2)))
    journal._tidy()
    assert 2 not in commits(objects)
    assert [write.graph_id for write in after(objects).graphs] == ["first", "second"]


def test_expired_answers_are_not_loaded() -> None:
    objects = MemoryObjects()
    opened(objects).commit(put(answers=[answer("over", time.time() - 1), answer("alive", FAR)]))
    assert [stored.key for stored in after(objects).answers] == ["alive"]


def test_empty_batch_writes_no_commit() -> None:
    objects = MemoryObjects()
    journal = opened(objects)
    before = commits(objects)
    journal.commit([])
    journal.commit([Commit()])
    assert commits(objects) == before


def test_memory_journal() -> None:
    journal = MemoryJournal()
    assert journal.load() == Loaded()
    journal.commit(put(tensor("a", 1)))
    journal.close()


@pytest.mark.parametrize("kept", [False, True])
def test_failed_write_is_withdrawn(kept: bool) -> None:
    objects = FailingObjects()
    journal = opened(objects)
    journal.commit(put(tensor("a", 1)))
    objects.fail(kept=kept)
    with pytest.raises(OSError, match="failed on purpose"):
        journal.commit(put(tensor("a", 2), tensor("b", 2)))
    assert values(after(objects)) == {"a": 1}
    journal.commit(put(tensor("c", 3)))
    assert values(after(objects)) == {"a": 1, "c": 3}


def test_failed_write_is_withdrawn_by_a_later_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = FailingObjects()
    journal = opened(objects)

    def unreachable(*_: object) -> bytes:
        raise OSError(errno.EIO, "no network")

    objects.fail(kept=True)
    with monkeypatch.context() as patch:
        patch.setattr(objects, "get", unreachable)
        with pytest.raises(OSError, match="failed on purpose"):
            journal.commit(put(tensor("a", 2)))
    assert values(after(objects)) == {"a": 2}, "it is there, and nobody was told"
    journal.commit(put(tensor("b", 3)))
    assert values(after(objects)) == {"b": 3}


def test_repeated_request_recognizes_its_own_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store answers late, so its client repeats the request and learns that the object exists."""
    objects = MemoryObjects()
    journal = opened(objects)
    original = objects.put_new

    def twice(key: str, data: list[bytes]) -> None:
        original(key, data)
        original(key, data)

    monkeypatch.setattr(objects, "put_new", twice)
    journal.commit(put(tensor("a", 1)))
    journal.commit(put(tensor("b", 2)))
    assert values(after(objects)) == {"a": 1, "b": 2}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_reported(number: int) -> None:
    objects = FailingObjects()
    journal = opened(objects)
    journal.commit(put(tensor("a", 1)))
    objects.fail(number)
    with pytest.raises(StateFull, match="the place is full"):
        journal.commit(put(tensor("a", 2)))
    assert values(after(objects)) == {"a": 1}
    journal.commit(put(tensor("a", 3)))
    assert values(after(objects)) == {"a": 3}


def test_dead_commits_are_deleted_to_make_room() -> None:
    objects = FailingObjects()
    journal = opened(objects)
    for value in range(4):
        journal.commit(put(tensor("a", value)))
    put_hold(objects, 100)
    objects.fail(errno.ENOSPC)
    journal.commit(put(tensor("b", 9)))
    assert len(commits(objects)) == 2, "the last of a, and b"
    assert values(after(objects)) == {"a": 3, "b": 9}
    assert list(objects.list("holds/")) == [], "the backup is to know"


def test_last_server_to_open_has_the_place() -> None:
    objects = MemoryObjects()
    first = opened(objects)
    first.commit(put(tensor("a", 1)))
    second = ObjectJournal(objects, "the place")
    assert values(second.load()) == {"a": 1}
    for _ in range(2):
        with pytest.raises(StateLost, match="another server writes to the place now"):
            first.commit(put(tensor("a", 2)))
    second.commit(put(tensor("a", 3)))
    assert values(after(objects)) == {"a": 3}
    first.close()
    second.commit(put(tensor("b", 4)))


def test_sleeping_server_finds_its_next_number_taken() -> None:
    """The second server's commits are deleted, but its opening keeps the number that the first would use next."""
    objects = MemoryObjects()
    first = opened(objects)
    first.commit(put(tensor("a", 1)))
    second = opened(objects, EAGER)
    for value in range(2, 30):
        second.commit(put(tensor("a", value)))
    second.close()
    third = opened(objects, EAGER)
    third.commit(put(tensor("a", 30)))
    third.close()
    with pytest.raises(StateLost):
        first.commit(put(tensor("a", 99)))
    assert values(after(objects)) == {"a": 30}


def test_last_number_is_not_reused() -> None:
    """All commits of the first server are dead; the second must not reuse their numbers."""
    objects = MemoryObjects()
    first = opened(objects, EAGER)
    for key in "abc":
        first.commit(put(answers=[answer(key, time.time() - 1)]))
        assert first._tidied is not None
        first._tidied.result()
    assert commits(objects) == [1, 4]
    second = opened(objects, EAGER)
    assert commits(objects) == [1, 4, 5]
    with pytest.raises(StateLost):
        first.commit(put(tensor("a", 1)))
    second.commit(put(tensor("a", 2)))
    assert values(after(objects)) == {"a": 2}


def test_openings_are_never_deleted() -> None:
    """A server may sleep for any time, so its next number must stay taken."""
    objects = MemoryObjects()
    for value in range(8):
        journal = opened(objects, EAGER)
        if value % 4 == 0:
            journal.commit(put(tensor(f"t{value}", value)))
    assert commits(objects) == list(range(1, 11))
    assert values(after(objects)) == {"t0": 0, "t4": 4}


def test_one_of_several_concurrent_openings_wins() -> None:
    """Each loads the earlier state, and exactly one of them has the place in the end."""
    from concurrent.futures import ThreadPoolExecutor

    for turn in range(10):
        objects = MemoryObjects()
        opened(objects).commit(put(tensor("a", turn)))
        journals = [ObjectJournal(objects, "the place") for _ in range(4)]
        with ThreadPoolExecutor(4) as threads:
            assert all(values(loaded) == {"a": turn} for loaded in threads.map(ObjectJournal.load, journals))
        committed = []
        for number, journal in enumerate(journals):
            try:
                journal.commit(put(tensor(f"b{number}", number)))
                committed.append(number)
            except StateLost:
                continue
        assert len(committed) == 1
        assert values(after(objects)) == {"a": turn, f"b{committed[0]}": committed[0]}
