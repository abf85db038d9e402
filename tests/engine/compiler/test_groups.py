"""Fusion groups: which nodes become one kernel, over which rows; no path leaves a kernel and comes back."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import find_kernels
from engine.compiler.fusion_groups import LONGEST_ROW, Grouping
from engine.cuda.kernels import cuda_fused_kernel
from engine.ir.tensor_type import FLOAT32, UINT32
from engine.ops.randomness.threefry import bitcast


def leaf(*shape: int, dtype: str = "float64") -> Value:
    return Builder(registry()).leaf(TensorType(shape, np.dtype(dtype)), 0)


def grouped(*outputs: Value, least: int = 1, late: bool = False) -> list[tuple[list[str], int | None]]:
    """The ops of each group of several nodes, and its trailing axes."""
    graph = outputs[0].builder.graph(outputs)
    groups = [group for group in Grouping(graph, least, late=late).groups() if len(group.nodes) > 1]
    return [([graph.nodes[i].op.name for i in group.nodes], group.row_axes) for group in groups]


def test_elementwise_nodes_of_one_shape_are_one_group() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin() * x.cos()) == [(["sin", "cos", "mul"], None)]


def test_other_shapes_and_dtypes_are_not_grouped() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin().slice(starts=(0, 0), stops=(2, 6)).cos()) == []
    assert grouped(leaf(4, 6).sin().cast(dtype=FLOAT32).cos()) == []


def test_other_dtypes_are_not_grouped_with_row_flags() -> None:
    """The kernel would read them as numbers of its own dtype."""
    x = leaf(4, 6, dtype="float32")
    flags = x.max(axes=(1,)) > 0.5
    doubles, floats = (x.builder.leaf(TensorType((4,), np.dtype(name)), name) for name in ("float64", "float32"))
    assert grouped(flags.where(doubles, doubles)) == [(["max", "greater"], 1)]
    assert grouped(flags.where(floats, floats)) == [(["max", "greater", "where"], 1)]


def test_reduction_and_its_reader_are_one_group_by_rows() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin() - x.sin().sum(axes=(1,), keepdims=True)) == [(["sin", "sin", "sum", "sub"], 1)]
    assert grouped(leaf(4, 6).sin().softmax(axis=1).neg()) == [(["sin", "softmax", "neg"], 1)]


def test_row_may_have_several_trailing_axes() -> None:
    x = leaf(4, 2, 3)
    assert grouped(x.sin().mean(axes=(1, 2)).exp()) == [(["sin", "mean", "exp"], 2)]


def test_sum_over_rows_ends_the_group() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin().sum(axes=(0,)).exp()) == [(["sin", "sum"], 1)]


def test_maximum_over_rows_is_not_grouped() -> None:
    """Only sums are computed in parts, block by block."""
    x = leaf(4, 6)
    assert grouped(x.sin().max(axes=(0,))) == []


def test_two_pass_variance_is_not_grouped() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin().var(axes=(1,))) == []


def test_softmax_across_rows_is_not_grouped() -> None:
    assert grouped(leaf(4, 6).sin().softmax(axis=0)) == []


def test_path_out_of_a_group_and_back_splits_it() -> None:
    """sin and add could be one group if add did not depend on sin through the product."""
    x = leaf(4, 4)
    y = x.sin()
    assert grouped((y.exp() @ x) + y.cos()) == [(["sin", "exp", "cos"], None)]


@pytest.mark.parametrize(("extent", "row_axes"), [(LONGEST_ROW, 1), (LONGEST_ROW + 1, None)])
def test_rows_are_no_longer_than_the_cache(extent: int, row_axes: int | None) -> None:
    x = leaf(2, extent)
    y = x.sin() - x.sin().sum(axes=(1,), keepdims=True)
    assert grouped(y)[0][1] == row_axes


def test_small_graphs_are_not_grouped() -> None:
    assert grouped(leaf(4, 6).sin().cos(), least=25) == []
    assert grouped(leaf(4, 6).sin().cos(), least=24) == [(["sin", "cos"], None)]


@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_only_float32_and_float64_are_grouped(dtype: str) -> None:
    x = leaf(4, 6, dtype=dtype)
    assert grouped(x.neg().abs()) == []


def test_excluded_nodes_are_in_no_group() -> None:
    x = leaf(4, 6)
    y = x.sin()
    graph = x.builder.graph([y.cos().exp()])
    groups = list(Grouping(graph, 1, excluded={y.index}).groups())
    assert [[graph.nodes[i].op.name for i in group.nodes] for group in groups] == [["cos", "exp"]]


def test_bitcast_is_in_no_group() -> None:
    """A value per row may gain unit axes; seen as words, it has other bits than in the kernel."""
    row = leaf(4, 5, dtype="float32").sum(axes=(1,)).exp()
    graph = row.builder.graph([row.reshape(shape=(4, 1)), bitcast(row, UINT32)])
    members = Grouping(graph, 1).members
    assert [member is not None for member in members] == [False, True, True, True, False]


# ---------------------------------------------------------------- groups as late as their readers

#: too many rows for groups to be joined for being small
ROWS = 2000


def leaf_of(x: Value, *shape: int) -> Value:
    """Another leaf of the same graph."""
    return x.builder.leaf(TensorType(shape, x.dtype), len(x.builder.nodes))


def later(x: Value) -> Value:
    """A value of the same shape and dtype, behind a kernel and a product."""
    return x.sin() @ leaf_of(x, 6, 6)


def test_late_group_joins_its_reader() -> None:
    x = leaf(ROWS, 6)
    y = leaf_of(x, ROWS, 6)
    output = y * y.exp().sum(axes=(1,), keepdims=True) + later(x).cos()
    assert grouped(output) == [(["exp", "sum", "mul"], 1), (["cos", "add"], 1)]
    assert grouped(output, late=True) == [(["exp", "sum", "mul", "cos", "add"], 1)]


def test_chained_groups_move_together() -> None:
    """The second group moves first, and those that it reads can follow."""
    x = leaf(ROWS, 6)
    y = leaf_of(x, ROWS, 6).exp().neg()
    output = (y + later(x)).tanh() + later(later(x)).cos()
    assert ["exp", "neg", "add", "tanh", "cos", "add"] in [names for names, _ in grouped(output, late=True)]


def test_group_with_an_early_reader_stays_early() -> None:
    x = leaf(ROWS, 6)
    y = leaf_of(x, ROWS, 6).exp().neg()
    output = (y + (y @ leaf_of(x, 6, 6)).cos() + later(x).cos()).tanh()
    assert next(names for names, _ in grouped(output, late=True)) == ["exp", "neg"]


def test_single_sums_over_rows_are_joined() -> None:
    """Otherwise each would be a launch of its own."""
    for columns, together in (((6, 6, 6), 3), ((6, 5, 6), 2)):
        x = leaf(4, 6)
        sums = [(x @ leaf_of(x, 6, n)).sum(axes=(0,)) for n in columns]
        assert grouped(*sums) == []
        assert grouped(*sums, late=True) == [(["sum"] * together, 1)]


def test_small_groups_are_joined() -> None:
    x = leaf(4, 6)
    separate = [x.sin().cos(), leaf_of(x, 4, 6).exp().neg()]
    assert grouped(*separate) == [(["sin", "cos"], None), (["exp", "neg"], None)]
    assert grouped(*separate, late=True) == [(["sin", "cos", "exp", "neg"], None)]


def test_large_or_strided_groups_are_not_joined() -> None:
    """Rows that one kernel reads across are not rows of the other."""
    large = leaf(100, 90)
    separate = [large.sin().cos(), leaf_of(large, 100, 90).exp().neg()]
    assert grouped(*separate, late=True) == grouped(*separate)
    x = leaf(4, 6)
    turned = [x.sin().cos(), leaf_of(x, 6, 4).transpose().exp().neg()]
    assert grouped(*turned, late=True) == grouped(*turned)


@pytest.mark.parametrize("name", ["steps", "sums"])
def test_joined_groups_respect_the_gpu_argument_limit(name: str) -> None:
    """One kernel that the GPU refuses would disable all kernels of the plan."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType((4, 6), np.dtype("float32")), i) for i in range(400)]
    steps = [w - g * 0.1 for w, g in zip(leaves[::2], leaves[1::2], strict=True)]
    graph = builder.graph(steps if name == "steps" else [x.sum(axes=(0,)) for x in leaves])
    kernels = find_kernels(graph, 1, compiled=True, late=True)
    assert 1 < len(kernels) < 20
    assert sum(len(kernel.group) for kernel in kernels) == len(graph.nodes) - len(leaves)
    for kernel in kernels:
        assert kernel.node is not None
        assert isinstance(kernel.node.op, Fused)
        cuda_fused_kernel(kernel.node.op)  # raises if the GPU refuses it


def test_group_without_a_reading_group_stays() -> None:
    x = leaf(ROWS, 6)
    output = (x.sin().cos() @ leaf_of(x, 6, 6)).neg().tanh()
    assert grouped(output, late=True) == grouped(output) == [(["sin", "cos"], None), (["neg", "tanh"], None)]
