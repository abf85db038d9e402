"""Output layouts: products write where they are read, which saves copies and keeps values; and the exceptions."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np
import pytest

from engine import Builder, Graph, Limits, TensorType, Value, open_executor, registry
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import Fused
from engine.compiler.output_layout import output_layout
from engine.compiler.plan import MemoryBlocks, make_plan
from engine.ir.tensor_type import HostArray
from engine.ops.linalg.layouts import PermutedResults, StridedProducts
from engine.ops.nn.attention_tiles import GRADIENTS, ROWS

PLENTY = 1 << 40


class Case:
    """A graph under construction, and its feeds."""

    def __init__(self, dtype: str = "float32") -> None:
        self.builder, self.dtype = Builder(registry()), np.dtype(dtype)
        self.feeds: dict[Any, HostArray] = {}

    def leaf(self, *shape: int) -> Value:
        """A leaf of whole numbers, whose products and sums are exact."""
        number = len(self.feeds)
        self.feeds[number] = np.random.default_rng(number).integers(-4, 5, shape).astype(self.dtype)
        return self.builder.leaf(TensorType(shape, self.dtype), number)

    def graph(self, *outputs: Value) -> Graph:
        return self.builder.graph(outputs)

    def run_graph(self, graph: Graph) -> Sequence[HostArray]:
        return open_executor("cpu").run(make_plan(graph, Limits()), self.feeds)


def lay_out(graph: Graph, looped: Container[int] = ()) -> Graph:
    return output_layout(graph, looped).graph


def copies(graph: Graph) -> list[str]:
    """Ops that only copy: they compute nothing, and take memory of their own."""
    storage = MemoryBlocks(graph)
    names = (node.op.name for i, node in enumerate(graph.nodes) if not storage.is_view[i])
    return [name for name in names if name in {"reshape", "cat", "identity"}]


def strided(graph: Graph) -> list[tuple[tuple[int, ...], ...]]:
    """Strides of the parts of each result."""
    return [tuple(part.strides for part in n.op.parts) for n in graph.nodes if isinstance(n.op, StridedProducts)]


def joined(*parts: Value, axis: int) -> Value:
    return parts[0].builder.emit(registry().ops["cat"], parts, {"axis": axis})


def heads_merged(case: Case) -> Value:
    y = case.leaf(2, 3, 5, 4) @ case.leaf(2, 3, 4, 6)
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 18))


def parts_of_one(case: Case) -> Value:
    """Like the gradient of queries, keys and values that were one product."""
    products = [case.leaf(2, 3, 5, 4) @ case.leaf(2, 3, 4, 6) for _ in range(3)]
    whole = joined(*(x.reshape(shape=(1, *x.shape)) for x in products), axis=0)
    return whole.transpose(axes=(1, 3, 0, 2, 4)).reshape(shape=(10, 54))


def side_by_side(case: Case) -> Value:
    products = [case.leaf(7, 4) @ case.leaf(4, n) for n in (2, 1, 3)]
    return joined(*products, axis=1)


def with_bias(case: Case) -> Value:
    return (case.leaf(6, 4) @ case.leaf(4, 5)).reshape(shape=(2, 3, 5)) + case.leaf(5)


def bias_first(case: Case) -> Value:
    return case.leaf(1, 1, 5) + (case.leaf(6, 4) @ case.leaf(4, 5)).reshape(shape=(2, 3, 5))


def heads_with_bias(case: Case) -> Value:
    y = (case.leaf(6, 4) @ case.leaf(4, 8)).reshape(shape=(2, 3, 8)) + case.leaf(8)
    return y.reshape(shape=(2, 3, 2, 4)).transpose(axes=(0, 2, 1, 3)).reshape(shape=(4, 12))


IN_PLACE: dict[str, tuple[Callable[[Case], Value], list[tuple[tuple[int, ...], ...]]]] = {
    "heads": (heads_merged, [((90, 6, 18, 1),)]),
    "parts of one": (parts_of_one, [((270, 6, 54, 1),) * 3]),
    "one beside another": (side_by_side, [((6, 1),) * 3]),
    "bias": (with_bias, [((5, 1),)]),
    "bias first": (bias_first, [((5, 1),)]),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_products_write_in_the_layout_of_their_reader(name: str) -> None:
    write, strides = IN_PLACE[name]
    case = Case()
    graph = case.graph(write(case))
    laid_out = lay_out(graph)
    assert strided(laid_out) == strides
    assert not copies(laid_out)
    assert not any(node.op.name in {"add", "matmul"} for node in laid_out.nodes)
    for one, other in zip(case.run_graph(laid_out), case.run_graph(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_bias_is_fused_even_if_rows_are_split() -> None:
    """Heads split the rows of the product, so that one copy is left."""
    case = Case()
    graph = case.graph(heads_with_bias(case))
    laid_out = lay_out(graph)
    assert copies(laid_out) == ["reshape"]
    assert [part.has_bias for n in laid_out.nodes if isinstance(n.op, StridedProducts) for part in n.op.parts] == [True]
    np.testing.assert_array_equal(case.run_graph(laid_out)[0], case.run_graph(graph)[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_layouts_of_every_float_dtype(dtype: str) -> None:
    case = Case(dtype)
    graph = case.graph(heads_merged(case))
    laid_out = lay_out(graph)
    assert strided(laid_out)
    np.testing.assert_array_equal(case.run_graph(laid_out)[0], case.run_graph(graph)[0])


def read_twice(case: Case) -> Value:
    y = case.leaf(2, 3, 5, 4) @ case.leaf(2, 3, 4, 6)
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 18)) @ y.reshape(shape=(10, 18)).transpose()


def rows_apart(case: Case) -> Value:
    """Elements of a row would not be contiguous."""
    return (case.leaf(5, 4) @ case.leaf(4, 6)).transpose().reshape(shape=(3, 10))


def cast_by_cat(case: Case) -> Value:
    one = case.leaf(7, 4) @ case.leaf(4, 2)
    other = case.leaf(7, 2).cast(dtype=np.dtype("float64"))
    return joined(one, other, axis=1)


def product_cast_by_cat(case: Case) -> Value:
    """8-bit integers wrap around, and floats do not."""
    one = case.leaf(7, 40).cast(dtype=np.dtype("int8")) @ case.leaf(40, 2).cast(dtype=np.dtype("int8"))
    return joined(one, case.leaf(7, 4) @ case.leaf(4, 2), axis=1)


def far_back(case: Case) -> Value:
    y = case.leaf(1, 4) @ case.leaf(4, 2)
    for _ in range(1000):
        y = joined(y, case.leaf(1, 4) @ case.leaf(4, 2), axis=0)
    return y


def beside_a_leaf(case: Case) -> Value:
    one = case.leaf(7, 4) @ case.leaf(4, 2)
    return joined(one, case.leaf(7, 2), axis=1)


def sum_of_two(case: Case) -> Value:
    return (case.leaf(6, 4) @ case.leaf(4, 5)) + (case.leaf(6, 4) @ case.leaf(4, 5))


def bias_of_rows(case: Case) -> Value:
    return (case.leaf(5, 4) @ case.leaf(4, 5)) + case.leaf(5, 1)


def bias_of_several_rows(case: Case) -> Value:
    return (case.leaf(6, 4) @ case.leaf(4, 4)).reshape(shape=(3, 8)) + case.leaf(8)


def bias_of_one_number(case: Case) -> Value:
    return case.leaf(4) @ case.leaf(4) + case.leaf()


def whole_numbers(case: Case) -> Value:
    y = case.leaf(2, 3, 5, 4).cast(dtype=np.dtype("int64")) @ case.leaf(2, 3, 4, 6).cast(dtype=np.dtype("int64"))
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 18))


REFUSED = [
    *(read_twice, rows_apart, cast_by_cat, beside_a_leaf, sum_of_two, bias_of_rows, bias_of_several_rows),
    *(bias_of_one_number, whole_numbers, product_cast_by_cat),
]


@pytest.mark.parametrize("write", REFUSED)
def test_unsupported_layouts_are_left_unchanged(write: Callable[[Case], Value]) -> None:
    case = Case()
    graph = case.graph(write(case))
    assert lay_out(graph) is graph


def views_behind_it(case: Case) -> Value:
    y = case.leaf(4, 6).slice(starts=(0, 0), stops=(4, 4)).reshape(shape=(2, 2, 4))
    for _ in range(1000):
        y = y.transpose(axes=(1, 0, 2))
    return y @ case.leaf(4, 3)


@pytest.mark.parametrize("write", [far_back, views_behind_it])
def test_long_chains_do_not_exceed_the_recursion_limit(write: Callable[[Case], Value]) -> None:
    """The chains are longer than Python's recursion limit."""
    case = Case()
    lay_out(case.graph(write(case)))


def test_float64_bias_is_not_fused() -> None:
    """GPU libraries do not promise to add one."""
    case = Case("float64")
    graph = case.graph(with_bias(case))
    assert lay_out(graph) is graph


def test_bias_added_by_a_kernel_stays_there() -> None:
    case = Case()
    graph = case.graph(with_bias(case).tanh())
    assert lay_out(graph, {i for i, n in enumerate(graph.nodes) if n.op.name in {"add", "tanh"}}) is graph
    compilable = compiled_within(graph, PLENTY, 1, microkernels=False, few_launches=True)
    assert compilable is not None
    assert [step.op.name for step in compilable.plan.steps] == ["matmul", "reshape", "fused", "get_output"]


# ---------------------------------------------------------------- reshapes of operands of products


def slice_part(k: int, whole: Value) -> Value:
    starts, stops = (k, 0, 0, 0, 0), (k + 1, 2, 3, 5, 4)
    return whole.slice(starts=starts, stops=stops).reshape(shape=(2, 3, 5, 4))


def queries_and_keys(case: Case) -> tuple[Value, Value]:
    whole = case.leaf(2, 5, 3, 3, 4).transpose(axes=(2, 0, 3, 1, 4))
    return slice_part(0, whole), slice_part(1, whole)


def test_reshape_read_by_products_is_a_view() -> None:
    case = Case()
    q, k = queries_and_keys(case)
    graph = case.graph(q @ k.transpose())
    laid_out = lay_out(graph)
    assert copies(graph) == ["reshape"] * 2
    assert not copies(laid_out)
    np.testing.assert_array_equal(case.run_graph(laid_out)[0], case.run_graph(graph)[0])


def test_reshape_read_by_other_ops_is_copied() -> None:
    case = Case()
    q, k = queries_and_keys(case)
    graph = case.graph(q @ k.transpose(), q.softmax(axis=3))
    laid_out = lay_out(graph)
    assert copies(laid_out) == ["reshape"]
    for one, other in zip(case.run_graph(laid_out), case.run_graph(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_output_reshape_is_copied() -> None:
    case = Case()
    q, _ = queries_and_keys(case)
    graph = case.graph(q, q @ q.transpose())
    assert lay_out(graph) is graph


def test_reshapes_of_one_value_share_a_copy() -> None:
    case = Case()
    x = case.leaf(4, 6).transpose()
    graph = case.graph(x.reshape(shape=(3, 8)), x.reshape(shape=(24,)), x.reshape(shape=(2, 12)).tanh())
    laid_out = lay_out(graph)
    assert copies(graph) == ["reshape"] * 3
    assert copies(laid_out) == ["reshape"]
    for one, other in zip(case.run_graph(laid_out), case.run_graph(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_reshape_that_strides_cannot_express_is_copied() -> None:
    case = Case()
    graph = case.graph(case.leaf(4, 6).transpose().reshape(shape=(3, 8)) @ case.leaf(8, 2))
    assert lay_out(graph) is graph


# ---------------------------------------------------------------- attention


def attended(case: Case, *mask: Value) -> Sequence[Value]:
    """Attention: y, and the log-sum-exp of its rows."""
    operands = [case.leaf(2, 3, 5, 4) for _ in range(3)]
    y = case.builder.emit(ROWS, (*operands, *mask), {"scale": 0.5, "causal": False})
    return y.output(0), y.output(1)


def merged(y: Value) -> Value:
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 12))


def orders(graph: Graph) -> list[tuple[tuple[int, ...], ...]]:
    return [node.op.orders for node in graph.nodes if isinstance(node.op, PermutedResults)]


def test_attention_writes_merged_heads() -> None:
    """Other readers see the result in its original layout."""
    case = Case()
    y, lse = attended(case)
    graph = case.graph(merged(y) @ case.leaf(12, 3), (y * 2.0 + lse).tanh(), merged(y))
    laid_out = lay_out(graph)
    assert not copies(laid_out)
    assert orders(laid_out) == [((0, 2, 1, 3), (0, 1, 2, 3))]
    for one, other in zip(case.run_graph(laid_out), case.run_graph(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_attention_gradients_have_the_layout_of_their_readers() -> None:
    case = Case("float64")
    operands, rows, g = (
        [case.leaf(2, 3, 5, 4) for _ in range(3)],
        [case.leaf(2, 3, 5, 1) for _ in range(2)],
        case.leaf(2, 3, 5, 4),
    )
    gradients = case.builder.emit(GRADIENTS, (*operands, *rows, g), {"scale": 0.5, "causal": True})
    turned = gradients.output(2).transpose(axes=(2, 0, 1, 3)).reshape(shape=(5, 24))
    graph = case.graph(merged(gradients.output(0)), gradients.output(1), turned, gradients.output(2) * 2.0)
    laid_out = lay_out(graph)
    assert not copies(laid_out)
    assert orders(laid_out) == [((0, 2, 1, 3), (0, 1, 2, 3), (2, 0, 1, 3))]
    for one, other in zip(case.run_graph(laid_out), case.run_graph(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_result_with_two_layouts_needs_one_copy() -> None:
    case = Case()
    operands = [case.leaf(2, 3, 5, 4) for _ in range(3)]
    y = case.builder.emit(ROWS, operands, {"scale": 0.5, "causal": False})
    turned = y.output(0).transpose(axes=(2, 0, 1, 3)).reshape(shape=(5, 24))
    graph = case.graph(merged(y.output(0)), turned)
    laid_out = lay_out(graph)
    assert copies(laid_out) == ["reshape"]
    for one, other in zip(case.run_graph(laid_out), case.run_graph(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_fusion_behind_attention_is_unchanged() -> None:
    case = Case()
    y, _ = attended(case)
    compilable = compiled_within(
        case.graph(merged(y), (y * 2.0).tanh()), PLENTY, 1, microkernels=False, few_launches=True
    )
    assert compilable is not None
    names = [step.op.name for step in compilable.plan.steps if not step.op.is_view]
    assert names == ["laid_results", "fused"]


def test_attention_without_a_gpu_recipe_is_unchanged() -> None:
    masked, halved = Case(), Case("float16")
    for case, y in ((masked, attended(masked, masked.leaf(5, 5))[0]), (halved, attended(halved)[0])):
        graph = case.graph(merged(y))
        assert lay_out(graph) is graph


def test_noncontiguous_columns_are_copied() -> None:
    case = Case()
    graph = case.graph(attended(case)[0].transpose(axes=(0, 1, 3, 2)).reshape(shape=(6, 20)))
    assert lay_out(graph) is graph


# ---------------------------------------------------------------- within the memory of a plan


def test_layout_is_skipped_without_memory() -> None:
    """The products would need all their operands at once."""
    case = Case()
    products = [case.leaf(2, 300).exp() @ case.leaf(300, 2) for _ in range(3)]
    graph = case.graph(joined(*products, axis=1))
    plain = compiled_within(graph, PLENTY, 1, microkernels=False)
    assert plain is not None
    compilables = [
        compiled_within(graph, most, 1, microkernels=False, few_launches=True)
        for most in (PLENTY, plain.plan.peak_bytes)
    ]
    names = [{step.op.name for step in each.plan.steps} for each in compilables if each is not None]
    assert ["laid_products" in each for each in names] == [True, False]


def test_kernels_record_the_nodes_they_replace() -> None:
    """Their uncompiled time then counts for the kernel, and the most expensive kernels are compiled first."""
    case = Case()
    y, _ = attended(case)
    graph = case.graph((merged(y) @ case.leaf(12, 3)).exp().neg(), heads_merged(case).tanh())
    compilable = compiled_within(graph, PLENTY, 1, microkernels=False, few_launches=True)
    assert compilable is not None
    names = [[graph.nodes[i].op.name for i in s.op.nodes] for s in compilable.plan.steps if isinstance(s.op, Fused)]
    assert sorted(names) == [["exp", "neg"], ["tanh"]]


def test_cpu_plan_has_no_strided_products() -> None:
    case = Case()
    graph = case.graph(heads_merged(case).tanh())
    compilable = compiled_within(graph, PLENTY, 1, microkernels=False)
    assert compilable is not None
    assert not any(isinstance(step.op, StridedProducts) for step in compilable.plan.steps)
