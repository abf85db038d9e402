"""Reverse mode, as nodes: where they come from, what there is without a path, and each node gone through once."""

from __future__ import annotations

import numpy as np

from engine import Builder, TensorType, Value, registry
from engine.autodiff.vjp import vjp, vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.graph import Origin
from engine.ir.passes import dce
from engine.ir.run_context import NO_LIMITS
from engine.runtime.numpy_backend import NumPyExecutor

VECTOR = TensorType((3,), np.dtype("float64"))


def built() -> Builder:
    return Builder(registry(), NO_LIMITS)


def run(*outputs: Value) -> list[list[float]]:
    plan = make_plan(dce(outputs[0].builder.graph(outputs)), NO_LIMITS)
    return [each.tolist() for each in NumPyExecutor().run(plan, {"x": np.array([1.0, 2.0, 3.0])})]


def test_what_a_rule_writes_comes_from_the_node_that_it_is_of_on_the_way_back() -> None:
    builder = built()
    x = builder.leaf(VECTOR, "x")
    builder.origin = Origin(7, "call", False, 1, Origin(3, "sin"))
    y = x.sin()
    builder.origin = Origin(9, "mul", False)
    z = y * y
    builder.origin, start = None, len(builder.nodes)
    vjp(builder, [(z, z.full_like(1.0))], [x])
    origins = {node.origin for node in builder.nodes[start + 1 :]}
    assert origins == {Origin(7, "call", True, 1, Origin(3, "sin")), Origin(9, "mul", True)}
    assert builder.origin is None


def test_without_a_path_there_is_none_or_zeros() -> None:
    builder = built()
    x, other = builder.leaf(VECTOR, "x"), builder.leaf(VECTOR, "other")
    y = x.sin()
    seeds = [(y, y.full_like(1.0))]
    found, missing = vjp(builder, seeds, [x, other])
    assert found is not None
    assert missing is None
    assert run(*vjp_or_zeros(builder, seeds, [other])) == [[0.0, 0.0, 0.0]]


def test_a_node_that_is_read_twice_is_gone_through_once() -> None:
    """Of a chain of sums of a node with itself there are 2⁸⁰ ways back, and 80 nodes."""
    builder = built()
    x = y = builder.leaf(VECTOR, "x")
    for _ in range(80):
        y = y + y
    start = len(builder.nodes)
    (gradient,) = vjp(builder, [(y, y.full_like(1.0))], [x])
    assert len(builder.nodes) - start < 250
    assert gradient is not None
    assert run(gradient) == [[2.0**80] * 3]


def test_what_has_operands_and_no_derivative_ends_a_path() -> None:
    """Nothing is written for what reads it, as for a leaf that nothing is asked of."""
    builder = built()
    x = builder.leaf(VECTOR, "x")
    y = x.square().stop_gradient().exp()
    start = len(builder.nodes)
    assert vjp(builder, [(y, x)], [x]) == [None]
    assert len(builder.nodes) == start
