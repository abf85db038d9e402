"""Recording of index checks: a recorder gets every check of its own context, and of no other."""

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


class Recorder(IndexErrors):
    """Records checks instead of raising."""

    def __init__(self) -> None:
        self.checks: list[tuple[list[int], int, int, int]] = []

    def record(self, index: Array, extent: int, operand: int, lower: int) -> None:
        self.checks.append((index.tolist(), extent, operand, lower))


@contextmanager
def recording() -> Iterator[Recorder]:
    recorder = Recorder()
    token = INDEX_ERRORS.set(recorder)
    try:
        yield recorder
    finally:
        INDEX_ERRORS.reset(token)


OUTSIDE = np.array([5])


def test_no_recorder_by_default() -> None:
    assert INDEX_ERRORS.get() is None
    with pytest.raises(IndexOutOfRange):
        check_indices(OUTSIDE, 3, operand=0)


def test_recorder_gets_the_arguments_of_each_check() -> None:
    with recording() as recorder:
        check_indices(OUTSIDE, 3, operand=2)
        check_indices(np.array([-1, 2]), 4, operand=1, lower=-4)
    assert recorder.checks == [([5], 3, 2, 0), ([-1, 2], 4, 1, -4)]
    with pytest.raises(IndexOutOfRange):
        check_indices(OUTSIDE, 3, operand=2)


def test_inner_recorder_replaces_the_outer_one() -> None:
    with recording() as outer, recording() as inner:
        check_indices(OUTSIDE, 3, operand=0)
        assert (len(outer.checks), len(inner.checks)) == (0, 1)


def test_another_thread_still_raises() -> None:
    raised: list[IndexOutOfRange] = []

    def check() -> None:
        try:
            check_indices(OUTSIDE, 3, operand=0)
        except IndexOutOfRange as error:
            raised.append(error)

    with recording() as recorder:
        thread = threading.Thread(target=contextvars.Context().run, args=(check,))
        thread.start()
        thread.join()
    assert len(raised) == 1
    assert recorder.checks == []
