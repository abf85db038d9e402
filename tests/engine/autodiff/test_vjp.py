"""Reverse mode as nodes: origins, missing paths, and a single visit of each node."""

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


def new_builder() -> Builder:
    return Builder(registry(), NO_LIMITS)


def run(*outputs: Value) -> list[list[float]]:
    plan = make_plan(dce(outputs[0].builder.graph(outputs)), NO_LIMITS)
    return [array.tolist() for array in NumPyExecutor().run(plan, {"x": np.array([1.0, 2.0, 3.0])})]


def test_backward_nodes_name_the_forward_node() -> None:
    builder = new_builder()
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


def test_missing_path_gives_none_or_zeros() -> None:
    builder = new_builder()
    x, other = builder.leaf(VECTOR, "x"), builder.leaf(VECTOR, "other")
    y = x.sin()
    seeds = [(y, y.full_like(1.0))]
    gradient, missing = vjp(builder, seeds, [x, other])
    assert gradient is not None
    assert missing is None
    assert run(*vjp_or_zeros(builder, seeds, [other])) == [[0.0, 0.0, 0.0]]


def test_node_read_twice_is_visited_once() -> None:
    """A chain of 80 sums of a node with itself has 2⁸⁰ paths and 80 nodes."""
    builder = new_builder()
    x = y = builder.leaf(VECTOR, "x")
    for _ in range(80):
        y = y + y
    start = len(builder.nodes)
    (gradient,) = vjp(builder, [(y, y.full_like(1.0))], [x])
    assert len(builder.nodes) - start < 250
    assert gradient is not None
    assert run(gradient) == [[2.0**80] * 3]


def test_node_without_a_derivative_ends_a_path() -> None:
    """No node is written for its readers, as for a leaf without a requested gradient."""
    builder = new_builder()
    x = builder.leaf(VECTOR, "x")
    y = x.square().stop_gradient().exp()
    start = len(builder.nodes)
    assert vjp(builder, [(y, x)], [x]) == [None]
    assert len(builder.nodes) == start
