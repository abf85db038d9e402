"""Fused plans fit in the memory of the plans that they replace."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import Fused, MicrokernelOp
from engine.compiler.plan import make_plan

NO_MEMORY = 0


def leaf(size: int) -> Value:
    return Builder(registry()).leaf(TensorType((size,), np.dtype("float32")), 0)


@pytest.mark.parametrize("views", [0, 1, 5])
def test_no_plan_if_none_fits(views: int) -> None:
    """Also if the last node that takes memory is followed by views of it."""
    y = leaf(1 << 12).exp() * 2.0
    for i in range(views):
        y = y.reshape(shape=(1 << (i + 1), (1 << 12) >> (i + 1)))
    assert compiled_within(y.builder.graph([y]), NO_MEMORY, 1) is None


def test_fitting_graph_is_fused() -> None:
    y = (leaf(1 << 12).exp() * 2.0).sin()
    graph = y.builder.graph([y])
    compilable = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert compilable is not None
    assert sum(isinstance(step.op, Fused) for step in compilable.plan.steps) == 1


def test_fusion_without_microkernels() -> None:
    x = leaf(1 << 12).reshape(shape=(64, 64))
    y = (x.exp() * 2.0) @ x
    graph = y.builder.graph([y])
    most = 2 * make_plan(graph, Limits()).peak_bytes
    for microkernels in (True, False):
        compilable = compiled_within(graph, most, 1, microkernels=microkernels)
        assert compilable is not None
        assert any(isinstance(step.op, MicrokernelOp) for step in compilable.plan.steps) is microkernels


SINGLE_OPS = {
    "sum": lambda x, y: x.sum(),
    "mean": lambda x, y: x.mean(axes=(0, 1)),
    "prod of rows": lambda x, y: x.prod(axes=(1,)),
    "mod": lambda x, y: x.mod(y),
    "lgamma": lambda x, y: x.lgamma(),
}


@pytest.mark.parametrize("shape", [(1, 1 << 14), (1, (1 << 14) + 1), (3, 9000), (20_000, 3), (1000, 1000), (7, 65_536)])
@pytest.mark.parametrize("op", SINGLE_OPS)
def test_single_op_has_room_for_the_parts_of_its_kernel(op: str, shape: tuple[int, int]) -> None:
    """Kernels need partial sums and counters, NumPy does not; they are planned all the same."""
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType(shape, np.dtype("float32")), i) for i in range(2))
    graph = builder.graph([SINGLE_OPS[op](x, y)])
    compilable = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert compilable is not None
    assert any(isinstance(step.op, Fused) for step in compilable.plan.steps)


def test_single_node_kernel_saves_a_result() -> None:
    """The centred values of batch normalisation are recomputed, and never stored."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((512, 256), np.dtype("float32")), 0)
    centred = x - x.mean(axes=(0,), keepdims=True)
    graph = builder.graph([centred * (centred.square().mean(axes=(0,), keepdims=True) + 1e-5).rsqrt()])
    compilable = compiled_within(graph, make_plan(graph, Limits()).peak_bytes, 1)
    assert compilable is not None
    stored_shapes = [t.shape for step in compilable.plan.steps if isinstance(step.op, Fused) for t in step.types]
    assert stored_shapes.count((512, 256)) == 1
