"""Indices, masks, cumulative ops and boxes in a loop body: equal to the unrolled loop, to second order."""

from __future__ import annotations

import numpy as np

from tests.engine.looping import Writer, agree, agree_in_batches, random, scan_by_hand

LENGTH = 4


def body(g: Writer, table: int, h: int, i: int, x: int) -> list[int]:
    """Read a row at a computed index, slice a cumulative product, compress by a mask, and write rows."""
    row = g.index(table, i, from_end=True)
    box = g.slice_at(g.cumprod(x, axis=0), g.reshape(i, shape=[1]), sizes=[2])
    picked = g.get_output(g.compress(x, g.greater(x, g.number(0.0)), k=2), index=0)
    updated = g.index_set(table, i, g.mul(row, box), from_end=True)
    total = g.sum(g.cumlogsumexp(updated, axis=0), axes=[0])
    new = g.tanh(g.add(g.add(h, total), picked))
    return [new, g.update_slice_at(x, new, g.reshape(i, shape=[1]))]


ARRAYS = (random(9, 2), random(2, seed=1), np.array([-1, 2, 0, -3]), random(LENGTH, 5, seed=2))


def looped(g: Writer, *operands: int) -> list[int]:
    return list(g.scan(*operands, body=body, carries=1, sequences=2))


def plain(g: Writer, table: int, h: int, *sequences: int) -> list[int]:
    return scan_by_hand(g, body, [table], [h], sequences, length=LENGTH)


def test_loop_with_computed_indices_matches_its_unrolling() -> None:
    agree(looped, plain, *ARRAYS, exact=False)


def test_each_example_has_its_own_indices() -> None:
    agree_in_batches(looped, plain, *ARRAYS, mapped=[[0], [2], [0, 1, 2, 3]])
