"""Work that threads share: every item once, what is a thread's own in one thread, and errors once all have stopped."""

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
def test_every_item_once(count: int, threads: int) -> None:
    made: list[int] = []
    share(lambda first, past, _: made.extend(range(first, past)), count, range(threads))
    assert sorted(made) == [*range(count)]


def test_what_is_a_threads_own_is_in_one_thread() -> None:
    meeting, seen = Barrier(2), dict[str, set[int]]()

    def work(_first: int, _past: int, own: str) -> None:
        if own not in seen:
            seen[own] = set()
            meeting.wait(60)
        seen[own].add(threading.get_ident())

    share(work, 50, ["one", "other"])
    assert [len(threads) for threads in seen.values()] == [1, 1]
    assert seen["one"] == {threading.get_ident()} != seen["other"]


def test_what_a_thread_raises_is_raised_once_all_have_stopped() -> None:
    begun, made = Event(), list[int]()

    def work(first: int, _past: int, own: int) -> None:
        if own:
            begun.set()
            raise ValueError("in a thread")
        begun.wait(60)
        made.append(first)

    with pytest.raises(ValueError, match="in a thread"):
        share(work, 2, range(2))
    assert made


def test_what_the_calling_thread_raises_is_raised_once_all_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, waited_for, made = Event(), Event(), list[int]()
    exception = Future.exception
    monkeypatch.setattr(Future, "exception", lambda other: (waited_for.set(), exception(other))[1])

    def work(first: int, _past: int, own: int) -> None:
        if not own:
            begun.wait(60)
            raise ValueError("in this thread")
        begun.set()
        waited_for.wait(60)
        made.append(first)

    with pytest.raises(ValueError, match="in this thread"):
        share(work, 40, range(2))
    found = len(made)
    waited_for.set()
    assert found == 7


def test_chunks_that_no_thread_begins_are_made_by_the_one_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, int]] = []
    with ThreadPoolExecutor(1) as busy:
        held = Event()
        busy.submit(held.wait)
        monkeypatch.setattr(sharing, "helping_threads", lambda: busy)
        share(lambda first, _, own: made.append((first, own)), 3, range(3))
        held.set()
    assert made == [(0, 0), (1, 0), (2, 0)]


def test_threads_are_as_quiet_as_the_one_that_asks() -> None:
    meeting = Barrier(2)

    def divide(*_: int) -> None:
        meeting.wait(60)
        np.divide(np.ones(2), np.zeros(2))

    with np.errstate(all="ignore"):
        share(divide, 2, range(2))
