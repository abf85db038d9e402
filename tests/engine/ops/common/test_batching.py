"""Operands of a batching rule: what is mapped has N in front, and the others broadcast against it as before."""

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


def drawn(shapes: tuple[tuple[int, ...], ...], mapped: tuple[bool, ...]) -> list[Array]:
    return [RNG.normal(size=(N, *shape) if m else shape) for m, shape in zip(mapped, shapes, strict=True)]


def of_one(arrays: list[Array], mapped: tuple[bool, ...], i: int) -> list[Array]:
    """The operands of the i-th example."""
    return [x[i] if m else x for m, x in zip(mapped, arrays, strict=True)]


WAYS = [mapped for mapped in product([False, True], repeat=2) if any(mapped)]


@pytest.mark.parametrize("mapped", WAYS, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_aligned_operands_broadcast_as_each_example_s_do(
    shapes: tuple[tuple[int, ...], ...], mapped: tuple[bool, ...]
) -> None:
    arrays = drawn(shapes, mapped)
    values, (a, b) = written(lambda *values: batching.align(mapped, values), *arrays)
    found = a + b
    assert found.shape == (N, *np.broadcast_shapes(*shapes))
    for i in range(N):
        np.testing.assert_array_equal(found[i], np.add(*of_one(arrays, mapped, i)))
    assert all(value.ndim <= 1 + max(map(len, shapes)) for value in values)


@pytest.mark.parametrize("mapped", WAYS, ids=str)
def test_expanded_operands_all_have_n_in_front(mapped: tuple[bool, ...]) -> None:
    arrays = drawn(((2, 3), (3,)), mapped)
    _, found = written(lambda *values: batching.expand(mapped, values), *arrays)
    assert [x.shape for x in found] == [(N, 2, 3), (N, 3)]
    for i in range(N):
        for x, wanted in zip(found, of_one(arrays, mapped, i), strict=True):
            np.testing.assert_array_equal(x[i], wanted)


def test_what_has_its_place_already_is_left_as_it_is() -> None:
    """No node is written for an operand that needs none."""

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


def test_the_size_is_that_of_any_mapped_operand() -> None:
    def write(*values: Value) -> list[Value]:
        assert batching.batch_size((False, True), values) == N
        assert batching.batch_size((True, False), values) == 7
        return list(values)

    written(write, np.ones((7, 2)), np.ones((N, 2)))


def test_axes_move_one_to_the_right() -> None:
    assert batching.shift_axes((0, 2)) == (1, 3)
    assert batching.shift_axes(()) == ()
