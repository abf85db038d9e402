"""Indices, masks, runs and boxes in the body of a loop: the same as its steps written out, to second order."""

from __future__ import annotations

import numpy as np

from tests.engine.looping import Writer, agree, agree_in_batches, random, scan_by_hand

LENGTH = 4


def body(g: Writer, table: int, h: int, i: int, x: int) -> list[int]:
    """A row at a computed index, a box of a running product, what a mask picks, and rows that are written."""
    row = g.index(table, i, from_end=True)
    box = g.slice_at(g.cumprod(x, axis=0), g.reshape(i, shape=[1]), sizes=[2])
    picked = g.get_output(g.compress(x, g.greater(x, g.number(0.0)), k=2), index=0)
    written = g.index_set(table, i, g.mul(row, box), from_end=True)
    total = g.sum(g.cumlogsumexp(written, axis=0), axes=[0])
    new = g.tanh(g.add(g.add(h, total), picked))
    return [new, g.update_slice_at(x, new, g.reshape(i, shape=[1]))]


ARRAYS = (random(9, 2), random(2, seed=1), np.array([-1, 2, 0, -3]), random(LENGTH, 5, seed=2))


def looped(g: Writer, *given: int) -> list[int]:
    return list(g.scan(*given, body=body, carries=1, sequences=2))


def plain(g: Writer, table: int, h: int, *sequences: int) -> list[int]:
    return scan_by_hand(g, body, [table], [h], sequences, length=LENGTH)


def test_steps_read_and_write_at_computed_places() -> None:
    agree(looped, plain, *ARRAYS, exact=False)


def test_each_example_has_its_own_places() -> None:
    agree_in_batches(looped, plain, *ARRAYS, mapped=[[0], [2], [0, 1, 2, 3]])
