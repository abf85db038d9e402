"""Groups: which nodes become one loop, over which rows; and that nothing has to leave a loop and come back."""

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
    found = [group for group in Grouping(graph, least, late=late).groups() if len(group.nodes) > 1]
    return [([graph.nodes[i].op.name for i in group.nodes], group.row_axes) for group in found]


def test_elementwise_nodes_of_one_shape_are_one() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin() * x.cos()) == [(["sin", "cos", "mul"], None)]


def test_another_shape_or_dtype_is_another_loop() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin().slice(starts=(0, 0), stops=(2, 6)).cos()) == []
    assert grouped(leaf(4, 6).sin().cast(dtype=FLOAT32).cos()) == []


def test_numbers_of_another_dtype_stay_out_of_a_loop_whose_rows_have_flags() -> None:
    """Where it reads them, it would take them for its own."""
    x = leaf(4, 6, dtype="float32")
    flags = x.max(axes=(1,)) > 0.5
    doubles, floats = (x.builder.leaf(TensorType((4,), np.dtype(name)), name) for name in ("float64", "float32"))
    assert grouped(flags.where(doubles, doubles)) == [(["max", "greater"], 1)]
    assert grouped(flags.where(floats, floats)) == [(["max", "greater", "where"], 1)]


def test_what_is_reduced_and_read_again_is_one_loop_by_rows() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin() - x.sin().sum(axes=(1,), keepdims=True)) == [(["sin", "sin", "sum", "sub"], 1)]
    assert grouped(leaf(4, 6).sin().softmax(axis=1).neg()) == [(["sin", "softmax", "neg"], 1)]


def test_several_trailing_axes_are_a_row() -> None:
    x = leaf(4, 2, 3)
    assert grouped(x.sin().mean(axes=(1, 2)).exp()) == [(["sin", "mean", "exp"], 2)]


def test_a_sum_over_rows_ends_the_loop() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin().sum(axes=(0,)).exp()) == [(["sin", "sum"], 1)]


def test_a_maximum_over_rows_is_none() -> None:
    """Only sums are made in parts, block by block."""
    x = leaf(4, 6)
    assert grouped(x.sin().max(axes=(0,))) == []


def test_variance_has_two_sweeps_and_stays_apart() -> None:
    x = leaf(4, 6)
    assert grouped(x.sin().var(axes=(1,))) == []


def test_softmax_across_rows_stays_apart() -> None:
    assert grouped(leaf(4, 6).sin().softmax(axis=0)) == []


def test_a_way_out_and_back_makes_two_loops() -> None:
    """sin and add could be one, if add did not need what the product makes of sin."""
    x = leaf(4, 4)
    y = x.sin()
    assert grouped((y.exp() @ x) + y.cos()) == [(["sin", "exp", "cos"], None)]


@pytest.mark.parametrize(("extent", "row_axes"), [(LONGEST_ROW, 1), (LONGEST_ROW + 1, None)])
def test_rows_are_no_longer_than_caches(extent: int, row_axes: int | None) -> None:
    x = leaf(2, extent)
    y = x.sin() - x.sin().sum(axes=(1,), keepdims=True)
    assert grouped(y)[0][1] == row_axes


def test_little_is_left_alone() -> None:
    assert grouped(leaf(4, 6).sin().cos(), least=25) == []
    assert grouped(leaf(4, 6).sin().cos(), least=24) == [(["sin", "cos"], None)]


@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_loops_are_of_float32_and_float64(dtype: str) -> None:
    x = leaf(4, 6, dtype=dtype)
    assert grouped(x.neg().abs()) == []


def test_nodes_that_stay_apart_are_in_none() -> None:
    x = leaf(4, 6)
    y = x.sin()
    graph = x.builder.graph([y.cos().exp()])
    groups = list(Grouping(graph, 1, excluded={y.index}).groups())
    assert [[graph.nodes[i].op.name for i in group.nodes] for group in groups] == [["cos", "exp"]]


def test_what_is_seen_as_another_dtype_is_in_no_loop() -> None:
    """A value a row stays one with unit axes; seen as words, it is other bits than the loop has."""
    row = leaf(4, 5, dtype="float32").sum(axes=(1,)).exp()
    graph = row.builder.graph([row.reshape(shape=(4, 1)), bitcast(row, UINT32)])
    members = Grouping(graph, 1).members
    assert [member is not None for member in members] == [False, True, True, True, False]


# ---------------------------------------------------------------- loops as late as their readers

#: so many that loops are not joined for being small
ROWS = 2000


def leaf_of(x: Value, *shape: int) -> Value:
    """Another one, for the same graph."""
    return x.builder.leaf(TensorType(shape, x.dtype), len(x.builder.nodes))


def later(x: Value) -> Value:
    """Of its shape and dtype, but behind a loop and a product."""
    return x.sin() @ leaf_of(x, 6, 6)


def test_a_group_is_as_late_as_a_reader_that_it_can_be_one_with() -> None:
    x = leaf(ROWS, 6)
    y = leaf_of(x, ROWS, 6)
    written = y * y.exp().sum(axes=(1,), keepdims=True) + later(x).cos()
    assert grouped(written) == [(["exp", "sum", "mul"], 1), (["cos", "add"], 1)]
    assert grouped(written, late=True) == [(["exp", "sum", "mul", "cos", "add"], 1)]


def test_chains_of_groups_are_late_together() -> None:
    """The second becomes late first, and makes room for what it reads."""
    x = leaf(ROWS, 6)
    y = leaf_of(x, ROWS, 6).exp().neg()
    written = (y + later(x)).tanh() + later(later(x)).cos()
    assert ["exp", "neg", "add", "tanh", "cos", "add"] in [names for names, _ in grouped(written, late=True)]


def test_what_an_earlier_reader_needs_is_not_late() -> None:
    x = leaf(ROWS, 6)
    y = leaf_of(x, ROWS, 6).exp().neg()
    written = (y + (y @ leaf_of(x, 6, 6)).cos() + later(x).cos()).tanh()
    assert next(names for names, _ in grouped(written, late=True)) == ["exp", "neg"]


def test_sums_over_rows_that_are_alone_are_one() -> None:
    """Where each of them would be a launch, whatever they add up."""
    for columns, together in (((6, 6, 6), 3), ((6, 5, 6), 2)):
        x = leaf(4, 6)
        sums = [(x @ leaf_of(x, 6, n)).sum(axes=(0,)) for n in columns]
        assert grouped(*sums) == []
        assert grouped(*sums, late=True) == [(["sum"] * together, 1)]


def test_loops_over_few_elements_are_one() -> None:
    x = leaf(4, 6)
    apart = [x.sin().cos(), leaf_of(x, 4, 6).exp().neg()]
    assert grouped(*apart) == [(["sin", "cos"], None), (["exp", "neg"], None)]
    assert grouped(*apart, late=True) == [(["sin", "cos", "exp", "neg"], None)]


def test_loops_over_many_elements_or_of_what_is_not_dense_stay_apart() -> None:
    """Rows that one of them reads across would be no rows of the other."""
    large = leaf(100, 90)
    apart = [large.sin().cos(), leaf_of(large, 100, 90).exp().neg()]
    assert grouped(*apart, late=True) == grouped(*apart)
    x = leaf(4, 6)
    turned = [x.sin().cos(), leaf_of(x, 6, 4).transpose().exp().neg()]
    assert grouped(*turned, late=True) == grouped(*turned)


@pytest.mark.parametrize("name", ["steps", "sums"])
def test_loops_are_joined_as_far_as_a_card_takes_their_arguments(name: str) -> None:
    """A plan with a kernel that it does not take has none at all."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType((4, 6), np.dtype("float32")), i) for i in range(400)]
    steps = [w - g * 0.1 for w, g in zip(leaves[::2], leaves[1::2], strict=True)]
    graph = builder.graph(steps if name == "steps" else [x.sum(axes=(0,)) for x in leaves])
    loops = find_kernels(graph, 1, compiled=True, late=True)
    assert 1 < len(loops) < 20
    assert sum(len(loop.group) for loop in loops) == len(graph.nodes) - len(leaves)
    for loop in loops:
        assert loop.node is not None
        assert isinstance(loop.node.op, Fused)
        cuda_fused_kernel(loop.node.op)  # else it raises


def test_what_no_loop_reads_stays_where_it_is() -> None:
    x = leaf(ROWS, 6)
    late = (x.sin().cos() @ leaf_of(x, 6, 6)).neg().tanh()
    assert grouped(late, late=True) == grouped(late) == [(["sin", "cos"], None), (["neg", "tanh"], None)]
