"""Directions of complex numbers, and 0 at 0."""

from __future__ import annotations

import numpy as np

from engine import Builder, Limits, TensorType, open_executor, registry
from engine.compiler.plan import make_plan
from engine.ops.elementwise.arithmetic import nonzero_size, unit


def test_unit_has_modulus_1_and_is_zero_at_zero() -> None:
    x = np.array([3 + 4j, -2j, 0, -0.0, 1j])
    builder = Builder(registry())
    value = builder.leaf(TensorType.of(x), "x")
    size = value.abs()
    graph = builder.graph([unit(value, size), nonzero_size(size)])
    actual, sizes = open_executor("cpu").run(make_plan(graph, Limits()), {"x": x})
    np.testing.assert_allclose(actual, [0.6 + 0.8j, -1j, 0, 0, 1j], rtol=1e-15)
    assert sizes.tolist() == [5, 2, 1, 1, 1]
