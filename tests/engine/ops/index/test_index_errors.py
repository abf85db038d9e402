"""Notes of indices: who takes them is told of every check in its own context, and nobody else is."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from engine.ir.errors import IndexOutOfRange
from engine.ir.op import Array
from engine.ops.index.indices import INDEX_ERRORS, IndexErrors, check_indices


class Noted(IndexErrors):
    """The checks that were not made."""

    def __init__(self) -> None:
        self.found: list[tuple[list[int], int, int, int]] = []

    def record(self, index: Array, extent: int, operand: int, lower: int) -> None:
        self.found.append((index.tolist(), extent, operand, lower))


@contextmanager
def noting() -> Iterator[Noted]:
    notes = Noted()
    token = INDEX_ERRORS.set(notes)
    try:
        yield notes
    finally:
        INDEX_ERRORS.reset(token)


OUTSIDE = np.array([5])


def test_nobody_takes_notes_unless_told_to() -> None:
    assert INDEX_ERRORS.get() is None
    with pytest.raises(IndexOutOfRange):
        check_indices(OUTSIDE, 3, operand=0)


def test_a_note_says_what_would_have_been_checked() -> None:
    with noting() as notes:
        check_indices(OUTSIDE, 3, operand=2)
        check_indices(np.array([-1, 2]), 4, operand=1, lower=-4)
    assert notes.found == [([5], 3, 2, 0), ([-1, 2], 4, 1, -4)]
    with pytest.raises(IndexOutOfRange):
        check_indices(OUTSIDE, 3, operand=2)


def test_notes_of_one_run_do_not_reach_another() -> None:
    with noting() as outer, noting() as inner:
        check_indices(OUTSIDE, 3, operand=0)
        assert (len(outer.found), len(inner.found)) == (0, 1)


def test_another_thread_raises_as_ever() -> None:
    raised: list[IndexOutOfRange] = []

    def check() -> None:
        try:
            check_indices(OUTSIDE, 3, operand=0)
        except IndexOutOfRange as error:
            raised.append(error)

    with noting() as notes:
        thread = threading.Thread(target=contextvars.Context().run, args=(check,))
        thread.start()
        thread.join()
    assert len(raised) == 1
    assert notes.found == []
