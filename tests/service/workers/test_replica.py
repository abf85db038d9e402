"""The replica of a worker's tensors: it gets changes and requested tensors, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from service.store.tables import TensorVersion
from service.workers import frames
from service.workers import residents as replica
from service.workers.frames import Inbox
from service.workers.memory import COPIED, TensorMemory
from service.workers.residents import LARGE_VERSION, Replica, Updates

W, V = ("", "w"), ("", "v")


@pytest.fixture
def memory() -> Iterator[TensorMemory]:
    loop = asyncio.new_event_loop()
    yield TensorMemory(loop)
    loop.close()


class Store:
    """The current versions, and the replica of one worker."""

    def __init__(self, memory: TensorMemory) -> None:
        self.memory = memory
        self.current: dict[tuple[str, str], TensorVersion] = {}
        self.replica = Replica(self.current)
        self.versions = 0

    def place(self, key: tuple[str, str], nbytes: int = 8) -> bool:
        """Place another version of this size; return whether the worker had a large one."""
        self.versions += 1
        allocated = self.memory.allocate(nbytes)
        np.frombuffer(allocated.view, np.uint8)[:] = self.versions
        self.current[key] = TensorVersion("uint8", (nbytes,), f"{self.versions:016x}", allocated)
        return self.replica.changed(key)

    def drop(self, key: tuple[str, str]) -> bool:
        del self.current[key]
        return self.replica.changed(key)


@pytest.fixture
def store(memory: TensorMemory) -> Store:
    return Store(memory)


def read_updates(news: Updates) -> list[Any]:
    """Name, version number and data of each frame; the number is 0 for a deleted tensor."""
    tensors = []
    for kind, frame, offset in Inbox().feed(b"".join(news.frames)):
        assert kind == frames.RESIDENT
        tensor = frames.read_tensor(frame, offset)
        tensors.append((tensor.name, int(tensor.etag or "0", 16), bytes(tensor.data)))
    return tensors


def test_requested_tensor_is_sent_once(store: Store) -> None:
    store.place(W)
    assert read_updates(store.replica.updates([W])) == [("w", 1, b"\1" * 8)]
    assert store.replica.updates([W]) == ([], [], [])
    assert store.replica.updates([V]) == ([], [], []), "there is no such thing"


def test_unrequested_tensor_is_not_sent(store: Store) -> None:
    assert not store.place(W)
    assert store.replica.updates([]) == ([], [], [])


def test_changes_of_requested_tensors_are_sent(store: Store) -> None:
    store.place(W)
    store.replica.updates([W])
    store.place(W)
    store.place(W)
    assert read_updates(store.replica.updates([])) == [("w", 3, b"\3" * 8)], "the last one alone"
    assert not store.replica.stale
    store.drop(W)
    assert read_updates(store.replica.updates([])) == [("w", 0, b"")]
    assert store.replica.updates([W]) == ([], [], [])


def test_namespaces_have_separate_tensors(store: Store) -> None:
    store.place(W)
    store.place(("other", "w"))
    assert read_updates(store.replica.updates([W])) == [("w", 1, b"\1" * 8)]
    assert read_updates(store.replica.updates([("other", "w")])) == [("w", 2, b"\2" * 8)]


def test_large_tensor_is_mapped_and_not_copied(store: Store) -> None:
    store.place(W, COPIED + 1)
    news = store.replica.updates([W])
    assert read_updates(news) == [("w", 1, b"")]
    first = store.current[W].memory.buffer  # type: ignore[attr-defined]
    assert (news.buffers, news.hidden) == ([first], [])
    store.place(W, COPIED + 1)
    news = store.replica.updates([])
    second = store.current[W].memory.buffer  # type: ignore[attr-defined]
    assert (news.buffers, news.hidden) == ([second], [first.number])


@pytest.mark.parametrize(("nbytes", "burden"), [(LARGE_VERSION - 1, False), (LARGE_VERSION, True)])
def test_replaced_version_is_a_burden_from_one_mebibyte(store: Store, nbytes: int, burden: bool) -> None:
    store.place(W, nbytes)
    assert not store.place(W, nbytes), "the worker has none yet"
    store.replica.updates([W])
    assert store.place(W) == burden


def test_least_recently_requested_tensor_is_evicted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST_KNOWN", 2)
    for name in "abc":
        store.place(("", name))
    store.replica.updates([("", "a")])
    store.replica.updates([("", "b")])
    store.place(("", "x"))
    assert read_updates(store.replica.updates([("", "a"), ("", "c")]))[-1] == ("b", 0, b"")
    assert read_updates(store.replica.updates([("", "b")]))[-1] == ("a", 0, b""), "c was asked for as lately"


def test_copied_bytes_are_bounded_and_exclude_mapped_ones(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "TENSOR_BYTES", 100)
    store.place(V, COPIED + 1)
    store.replica.updates([V])
    store.place(W, 60)
    assert len(read_updates(store.replica.updates([W]))) == 1
    store.place(("", "u"), 60)
    assert [name for name, *_ in read_updates(store.replica.updates([("", "u")]))] == ["u", "v", "w"]
    store.place(W, 40)
    assert [name for name, *_ in read_updates(store.replica.updates([W]))] == ["w"], "what was forgotten counts no more"


def test_tensors_of_one_job_do_not_evict_each_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST_KNOWN", 2)
    names = [("", name) for name in "abcd"]
    for key in names:
        store.place(key)
    assert [name for name, *_ in read_updates(store.replica.updates(names))] == ["a", "b", "c", "d"]
    store.place(V)
    assert [number for _, number, _ in read_updates(store.replica.updates([V]))] == [5, 0, 0, 0]


def test_mapped_bytes_are_bounded(memory: TensorMemory) -> None:
    """Each version has a name of its own, and none is deleted."""
    store = Store(memory)
    store.replica = Replica(store.current, mapped_limit=3 * COPIED)
    for name in "abc":
        store.place(("", name), COPIED + 1)
        news = store.replica.updates([("", name)])
    assert ([name for name, *_ in read_updates(news)], len(news.hidden)) == (["c", "a"], 1)
    assert read_updates(store.replica.updates([("", "b")])) == []
