"""Several index tensors: NumPy's advanced indexing is the reference, for every choice of axes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from engine import TensorType
from engine.ir.errors import BadAttribute, IndexOutOfRange, OperandCount, ShapeMismatch
from engine.ops.index.index import IndexedAxes, resolve_axes
from tests.engine.ops.run import grads, run

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).normal(size=(3, 4, 5, 2))
AXES = [axes for count in (1, 2, 3) for axes in permutations(range(4), count)]


def random_indices(axes: tuple[int, ...], seed: int = 1) -> list[Array]:
    """Indices that broadcast, some of them negative and some repeated."""
    rng = np.random.default_rng(seed)
    shapes = [(6, 1), (5,), (6, 5)]
    return [rng.integers(-X.shape[a], X.shape[a], shape) for a, shape in zip(axes, shapes, strict=False)]


def key(axes: tuple[int, ...], indices: list[Array]) -> tuple[Any, ...]:
    """The index that NumPy takes."""
    return tuple(indices[axes.index(a)] if a in axes else slice(None) for a in range(X.ndim))


@pytest.mark.parametrize("axes", AXES)
def test_index_and_index_add_match_numpy(axes: tuple[int, ...]) -> None:
    indices = random_indices(axes)
    where = key(axes, indices)
    expected = X[where]
    np.testing.assert_array_equal(run("index", X, *indices, axes=axes, from_end=True), expected)
    updates = np.random.default_rng(2).normal(size=expected.shape)
    added = X.copy()
    np.add.at(added, where, updates)
    actual = run("index_add", X, *indices, updates, axes=axes, from_end=True)
    np.testing.assert_allclose(actual, added, 1e-13)


@pytest.mark.parametrize("axes", AXES)
def test_last_write_wins_and_takes_the_gradient(axes: tuple[int, ...]) -> None:
    indices = random_indices(axes)
    where = key(axes, indices)
    updates = np.random.default_rng(2).normal(size=X[where].shape)
    # entry by entry, in row-major order of the indices
    shape = np.broadcast_shapes(*(i.shape for i in indices))
    first = IndexedAxes(X.shape, axes, shape).before
    written, owner = X.copy(), np.full(X.shape, -1)
    numbers = np.arange(updates.size).reshape(updates.shape)
    for position in np.ndindex(shape):
        target = key(axes, [np.broadcast_to(i, shape)[position] for i in indices])
        part = (*[slice(None)] * first, *position)
        written[target], owner[target] = updates[part], numbers[part]
    g = np.random.default_rng(3).normal(size=X.shape)
    value, (dx, du) = grads("index_set", X, *indices, updates, axes=axes, from_end=True, cotangent=g)
    np.testing.assert_array_equal(value, written)
    np.testing.assert_array_equal(dx, np.where(owner < 0, g, 0))
    expected = np.zeros(updates.size)
    expected[owner[owner >= 0]] = g[owner >= 0]
    np.testing.assert_array_equal(du, expected.reshape(updates.shape))


def test_updates_broadcast_and_empty_indices_write_no_entry() -> None:
    i = np.array([[0], [2]])
    np.testing.assert_array_equal(run("index_set", X, i, 7.0)[[0, 2]], np.full((2, 4, 5, 2), 7.0))
    empty = np.zeros(0, "int64")
    np.testing.assert_array_equal(run("index_set", X, empty, np.float32(3)), X)
    np.testing.assert_array_equal(run("index_add", X, empty, 3.0), X)


@pytest.mark.parametrize(("i", "j", "operand"), [(3, 0, 1), (-4, 0, 1), (0, 4, 2), (0, -5, 2)])
def test_each_index_is_checked_against_its_own_axis(i: int, j: int, operand: int) -> None:
    interval = {1: r"\[-3, 3\)", 2: r"\[-4, 4\)"}[operand]
    with pytest.raises(IndexOutOfRange, match=rf"operand {operand} .* in {interval}"):
        run("index", X, np.array([i]), np.array([j]), from_end=True)
    with pytest.raises(IndexOutOfRange, match=rf"operand {operand} .* in \[0, {operand + 2}\)"):
        run("index", X, np.array([max(i, -1)]), np.array([max(j, -1)]))


def test_invalid_operands_are_refused() -> None:
    i = np.array([0, 1])
    with pytest.raises(BadAttribute, match="axes must have 2 entries, one for each index, but has 1 entry"):
        run("index", X, i, i, axes=[0])
    with pytest.raises(OperandCount, match="takes at most 4 indices, one for each axis of x, but got 5 indices"):
        run("index", X, i, i, i, i, i)
    with pytest.raises(ShapeMismatch, match=r"operand 2 \(indices\) must have a shape that broadcasts with \[2\]"):
        run("index", X, i, np.zeros(3, "int64"))
    with pytest.raises(
        ShapeMismatch, match=r"operand 2 \(updates\) must have a shape that broadcasts to \[2, 4, 5, 2\]"
    ):
        run("index_add", X, i, np.zeros(3))
    with pytest.raises(OperandCount):
        run("index_add", X, i)


def test_default_axes_are_the_leading_ones() -> None:
    x = TensorType((3, 4), np.dtype(float))
    assert [resolve_axes(None, count, x) for count in (1, 2)] == [(0,), (0, 1)]
    with pytest.raises(OperandCount, match="takes at most 2 indices, one for each axis of x, but got 3 indices"):
        resolve_axes(None, 3, x)
