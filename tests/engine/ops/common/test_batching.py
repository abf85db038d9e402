"""Operands of a batching rule: mapped operands get a leading axis N, and the rest broadcast against them as before."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from engine.ir.graph import Value
from engine.ops.common import batching
from tests.engine.ops.values import Array, written

RNG = np.random.default_rng(13)
N = 4
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((5, 2, 3), (3,)),
]  # fmt: skip


def random_operands(shapes: tuple[tuple[int, ...], ...], mapped: tuple[bool, ...]) -> list[Array]:
    return [RNG.normal(size=(N, *shape) if m else shape) for m, shape in zip(mapped, shapes, strict=True)]


def example_operands(arrays: list[Array], mapped: tuple[bool, ...], i: int) -> list[Array]:
    """The operands of the i-th example."""
    return [x[i] if m else x for m, x in zip(mapped, arrays, strict=True)]


MAPPED = [mapped for mapped in product([False, True], repeat=2) if any(mapped)]


@pytest.mark.parametrize("mapped", MAPPED, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_aligned_operands_broadcast_like_single_examples(
    shapes: tuple[tuple[int, ...], ...], mapped: tuple[bool, ...]
) -> None:
    arrays = random_operands(shapes, mapped)
    values, (a, b) = written(lambda *values: batching.align(mapped, values), *arrays)
    actual = a + b
    assert actual.shape == (N, *np.broadcast_shapes(*shapes))
    for i in range(N):
        np.testing.assert_array_equal(actual[i], np.add(*example_operands(arrays, mapped, i)))
    assert all(value.ndim <= 1 + max(map(len, shapes)) for value in values)


@pytest.mark.parametrize("mapped", MAPPED, ids=str)
def test_expanded_operands_have_a_leading_batch_axis(mapped: tuple[bool, ...]) -> None:
    arrays = random_operands(((2, 3), (3,)), mapped)
    _, actual = written(lambda *values: batching.expand(mapped, values), *arrays)
    assert [x.shape for x in actual] == [(N, 2, 3), (N, 3)]
    for i in range(N):
        for x, expected in zip(actual, example_operands(arrays, mapped, i), strict=True):
            np.testing.assert_array_equal(x[i], expected)


def test_already_aligned_operands_add_no_nodes() -> None:
    """Operands that need no node are returned unchanged."""

    def write(*values: Value) -> list[Value]:
        aligned = batching.align((True, False, True), values)
        assert aligned[0] is values[0]
        assert aligned[1] is values[1]
        expanded = batching.expand((True, False, True), values)
        assert expanded[0] is values[0]
        assert expanded[2] is values[2]
        return [aligned[2]]

    arrays = [RNG.normal(size=shape) for shape in ((N, 2, 3), (2, 3), (N,))]
    assert written(write, *arrays)[1][0].shape == (N, 1, 1)


def test_batch_size_comes_from_a_mapped_operand() -> None:
    def write(*values: Value) -> list[Value]:
        assert batching.batch_size((False, True), values) == N
        assert batching.batch_size((True, False), values) == 7
        return list(values)

    written(write, np.ones((7, 2)), np.ones((N, 2)))


def test_shift_axes_adds_one() -> None:
    assert batching.shift_axes((0, 2)) == (1, 3)
    assert batching.shift_axes(()) == ()
