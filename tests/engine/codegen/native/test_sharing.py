"""Work shared by threads: items run once, own data stays in one thread, and errors wait for all threads."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest

from engine.codegen.native import native_call as sharing
from engine.codegen.native.native_call import share


@pytest.mark.parametrize("count", [0, 1, 3, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_runs_once(count: int, threads: int) -> None:
    done: list[int] = []
    share(lambda first, past, _: done.extend(range(first, past)), count, range(threads))
    assert sorted(done) == [*range(count)]


def test_own_data_stays_in_one_thread() -> None:
    meeting, thread_ids = Barrier(2), dict[str, set[int]]()

    def work(_first: int, _past: int, own: str) -> None:
        if own not in thread_ids:
            thread_ids[own] = set()
            meeting.wait(60)
        thread_ids[own].add(threading.get_ident())

    share(work, 50, ["one", "other"])
    assert [len(threads) for threads in thread_ids.values()] == [1, 1]
    assert thread_ids["one"] == {threading.get_ident()} != thread_ids["other"]


def test_error_of_a_helper_waits_for_all_threads() -> None:
    begun, done = Event(), list[int]()

    def work(first: int, _past: int, own: int) -> None:
        if own:
            begun.set()
            raise ValueError("in a thread")
        begun.wait(60)
        done.append(first)

    with pytest.raises(ValueError, match="in a thread"):
        share(work, 2, range(2))
    assert done


def test_error_of_the_calling_thread_waits_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, waited_for, done = Event(), Event(), list[int]()
    exception = Future.exception
    monkeypatch.setattr(Future, "exception", lambda other: (waited_for.set(), exception(other))[1])

    def work(first: int, _past: int, own: int) -> None:
        if not own:
            begun.wait(60)
            raise ValueError("in this thread")
        begun.set()
        waited_for.wait(60)
        done.append(first)

    with pytest.raises(ValueError, match="in this thread"):
        share(work, 40, range(2))
    count = len(done)
    waited_for.set()
    assert count == 7


def test_calling_thread_runs_chunks_that_no_helper_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[int, int]] = []
    with ThreadPoolExecutor(1) as busy:
        held = Event()
        busy.submit(held.wait)
        monkeypatch.setattr(sharing, "helping_threads", lambda: busy)
        share(lambda first, _, own: done.append((first, own)), 3, range(3))
        held.set()
    assert done == [(0, 0), (1, 0), (2, 0)]


def test_helpers_inherit_the_errstate() -> None:
    meeting = Barrier(2)

    def divide(*_: int) -> None:
        meeting.wait(60)
        np.divide(np.ones(2), np.zeros(2))

    with np.errstate(all="ignore"):
        share(divide, 2, range(2))
