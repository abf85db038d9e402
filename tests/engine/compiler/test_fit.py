"""Fused plans within the memory of those whose places they take."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import Fused, MicrokernelOp
from engine.compiler.plan import make_plan

NOTHING = 0


def leaf(size: int) -> Value:
    return Builder(registry()).leaf(TensorType((size,), np.dtype("float32")), 0)


@pytest.mark.parametrize("views", [0, 1, 5])
def test_what_fits_nowhere_is_given_up(views: int) -> None:
    """Also where nodes come after the last one that takes memory: views of it, which take none."""
    y = leaf(1 << 12).exp() * 2.0
    for i in range(views):
        y = y.reshape(shape=(1 << (i + 1), (1 << 12) >> (i + 1)))
    assert compiled_within(y.builder.graph([y]), NOTHING, 1) is None


def test_what_fits_is_fused() -> None:
    y = (leaf(1 << 12).exp() * 2.0).sin()
    graph = y.builder.graph([y])
    found = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert found is not None
    assert sum(isinstance(step.op, Fused) for step in found.plan.steps) == 1


def test_what_has_no_kernels_for_shapes_is_fused_alone() -> None:
    x = leaf(1 << 12).reshape(shape=(64, 64))
    y = (x.exp() * 2.0) @ x
    graph = y.builder.graph([y])
    most = 2 * make_plan(graph, Limits()).peak_bytes
    for microkernels in (True, False):
        found = compiled_within(graph, most, 1, microkernels=microkernels)
        assert found is not None
        assert any(isinstance(step.op, MicrokernelOp) for step in found.plan.steps) is microkernels


ALONE = {
    "sum": lambda x, y: x.sum(),
    "mean": lambda x, y: x.mean(axes=(0, 1)),
    "prod of rows": lambda x, y: x.prod(axes=(1,)),
    "mod": lambda x, y: x.mod(y),
    "lgamma": lambda x, y: x.lgamma(),
}


@pytest.mark.parametrize("shape", [(1, 1 << 14), (1, (1 << 14) + 1), (3, 9000), (20_000, 3), (1000, 1000), (7, 65_536)])
@pytest.mark.parametrize("op", ALONE)
def test_one_op_alone_has_room_for_the_parts_of_its_kernel(op: str, shape: tuple[int, int]) -> None:
    """Sums, and counts of what a kernel is not for: NumPy needs none, and they are planned all the same."""
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType(shape, np.dtype("float32")), i) for i in range(2))
    graph = builder.graph([ALONE[op](x, y)])
    found = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert found is not None
    assert any(isinstance(step.op, Fused) for step in found.plan.steps)


def test_a_lone_node_is_a_loop_where_that_spares_another_one_a_result() -> None:
    """What batch normalisation takes off is taken off again, and never written."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((512, 256), np.dtype("float32")), 0)
    centred = x - x.mean(axes=(0,), keepdims=True)
    graph = builder.graph([centred * (centred.square().mean(axes=(0,), keepdims=True) + 1e-5).rsqrt()])
    found = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert found is not None
    written = [t.shape for step in found.plan.steps if isinstance(step.op, Fused) for t in step.types]
    assert written.count((512, 256)) == 1
