"""Scans that are told how many steps to take: none at all, and as many for each example as it is told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine import TensorType, Value
from engine.graph.tensor_type import FLOAT64
from engine.ops.scan import CountedScan
from engine.transforms.vjp import vjp
from engine.transforms.vmap import vmap_onto
from tests.engine.ops.internal import body_of, compute

PAIR = TensorType((2,), FLOAT64)


@pytest.mark.parametrize(("count", "wanted"), [(0, [1.0, 1.0]), (2, [0.0, 0.0])])
def test_a_carry_that_each_step_makes_anew_keeps_its_gradient_where_there_is_none(
    count: int, wanted: list[float]
) -> None:
    forgets = body_of([PAIR, PAIR], lambda k, h: [k.sin()])
    attrs = {"body": forgets, "carries": 1, "sequences": 0, "length": 3, "reverse": False}

    def write(k: Value, h: Value, n: Value) -> Sequence[Value | None]:
        last = k.builder.emit(CountedScan(), (k, h, n), attrs).output(0)
        return vjp(k.builder, [(last, last.full_like(1.0))], [h])

    same, other = np.array([0.5, -2.0]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(compute([same, other, count], write), [wanted])


@pytest.mark.parametrize("reverse", [False, True])
def test_of_stacks_alone_each_example_has_zeros_beyond_its_own_count(reverse: bool) -> None:
    step = body_of([PAIR], lambda x: [x.exp(), x.greater(0.0)])
    attrs = {"body": step, "carries": 0, "sequences": 1, "length": 4, "reverse": reverse}

    def write(x: Value, one: Value, counts: Value, x_of_many: Value) -> Sequence[Value]:
        loop = x.builder.emit(CountedScan(), (x, one), attrs)
        return vmap_onto(x.builder, [loop.output(0), loop.output(1)], {one: counts, x: x_of_many}, 3)

    many, counts = np.random.default_rng(0).normal(size=(3, 4, 2)), np.array([2, 0, 4])
    there = (np.arange(4) < counts[:, None])[..., None]
    exponentials, positive = compute([many[0], 0, counts, many], write)
    np.testing.assert_allclose(exponentials, np.where(there, np.exp(many), 0.0), 1e-15)
    np.testing.assert_array_equal(positive, there & (many > 0))
