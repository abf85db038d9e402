"""Products written where they are read: what is left of copies, that values are the same, and what stays as it is."""

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


class Written:
    """A graph while it is written, and what it will be fed."""

    def __init__(self, dtype: str = "float32") -> None:
        self.builder, self.dtype = Builder(registry()), np.dtype(dtype)
        self.feeds: dict[Any, HostArray] = {}

    def leaf(self, *shape: int) -> Value:
        """Whole numbers, whose products and sums are exact."""
        number = len(self.feeds)
        self.feeds[number] = np.random.default_rng(number).integers(-4, 5, shape).astype(self.dtype)
        return self.builder.leaf(TensorType(shape, self.dtype), number)

    def graph(self, *outputs: Value) -> Graph:
        return self.builder.graph(outputs)

    def computed(self, graph: Graph) -> Sequence[HostArray]:
        return open_executor("cpu").run(make_plan(graph, Limits()), self.feeds)


def laid(graph: Graph, looped: Container[int] = ()) -> Graph:
    return output_layout(graph, looped).graph


def copies(graph: Graph) -> list[str]:
    """The ops that compute nothing, but take memory of their own."""
    storage = MemoryBlocks(graph)
    found = (node.op.name for i, node in enumerate(graph.nodes) if not storage.is_view[i])
    return [name for name in found if name in {"reshape", "cat", "identity"}]


def strided(graph: Graph) -> list[tuple[tuple[int, ...], ...]]:
    """How the parts of each result lie."""
    return [tuple(part.strides for part in n.op.parts) for n in graph.nodes if isinstance(n.op, StridedProducts)]


def joined(*parts: Value, axis: int) -> Value:
    return parts[0].builder.emit(registry().ops["cat"], parts, {"axis": axis})


def heads_merged(to: Written) -> Value:
    y = to.leaf(2, 3, 5, 4) @ to.leaf(2, 3, 4, 6)
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 18))


def parts_of_one(to: Written) -> Value:
    """As of the gradient of queries, keys and values that were one product."""
    products = [to.leaf(2, 3, 5, 4) @ to.leaf(2, 3, 4, 6) for _ in range(3)]
    whole = joined(*(x.reshape(shape=(1, *x.shape)) for x in products), axis=0)
    return whole.transpose(axes=(1, 3, 0, 2, 4)).reshape(shape=(10, 54))


def one_beside_another(to: Written) -> Value:
    products = [to.leaf(7, 4) @ to.leaf(4, n) for n in (2, 1, 3)]
    return joined(*products, axis=1)


def with_bias(to: Written) -> Value:
    return (to.leaf(6, 4) @ to.leaf(4, 5)).reshape(shape=(2, 3, 5)) + to.leaf(5)


def bias_first(to: Written) -> Value:
    return to.leaf(1, 1, 5) + (to.leaf(6, 4) @ to.leaf(4, 5)).reshape(shape=(2, 3, 5))


def heads_with_bias(to: Written) -> Value:
    y = (to.leaf(6, 4) @ to.leaf(4, 8)).reshape(shape=(2, 3, 8)) + to.leaf(8)
    return y.reshape(shape=(2, 3, 2, 4)).transpose(axes=(0, 2, 1, 3)).reshape(shape=(4, 12))


WRITTEN: dict[str, tuple[Callable[[Written], Value], list[tuple[tuple[int, ...], ...]]]] = {
    "heads": (heads_merged, [((90, 6, 18, 1),)]),
    "parts of one": (parts_of_one, [((270, 6, 54, 1),) * 3]),
    "one beside another": (one_beside_another, [((6, 1),) * 3]),
    "bias": (with_bias, [((5, 1),)]),
    "bias first": (bias_first, [((5, 1),)]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_products_write_where_they_are_read(name: str) -> None:
    write, lying = WRITTEN[name]
    to = Written()
    graph = to.graph(write(to))
    found = laid(graph)
    assert strided(found) == lying
    assert not copies(found)
    assert not any(node.op.name in {"add", "matmul"} for node in found.nodes)
    for one, other in zip(to.computed(found), to.computed(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_bias_goes_with_rows_that_are_cut() -> None:
    """Heads do not keep the columns of the product: its rows cannot have them all, so that one copy is left."""
    to = Written()
    graph = to.graph(heads_with_bias(to))
    found = laid(graph)
    assert copies(found) == ["reshape"]
    assert [part.has_bias for n in found.nodes if isinstance(n.op, StridedProducts) for part in n.op.parts] == [True]
    np.testing.assert_array_equal(to.computed(found)[0], to.computed(graph)[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_other_dtypes_are_laid_too(dtype: str) -> None:
    to = Written(dtype)
    graph = to.graph(heads_merged(to))
    found = laid(graph)
    assert strided(found)
    np.testing.assert_array_equal(to.computed(found)[0], to.computed(graph)[0])


def read_twice(to: Written) -> Value:
    y = to.leaf(2, 3, 5, 4) @ to.leaf(2, 3, 4, 6)
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 18)) @ y.reshape(shape=(10, 18)).transpose()


def rows_apart(to: Written) -> Value:
    """Elements of a row would not lie side by side."""
    return (to.leaf(5, 4) @ to.leaf(4, 6)).transpose().reshape(shape=(3, 10))


def cast_by_cat(to: Written) -> Value:
    one = to.leaf(7, 4) @ to.leaf(4, 2)
    other = to.leaf(7, 2).cast(dtype=np.dtype("float64"))
    return joined(one, other, axis=1)


def product_cast_by_cat(to: Written) -> Value:
    """Whole numbers of 8 bits wrap around, and floats do not."""
    one = to.leaf(7, 40).cast(dtype=np.dtype("int8")) @ to.leaf(40, 2).cast(dtype=np.dtype("int8"))
    return joined(one, to.leaf(7, 4) @ to.leaf(4, 2), axis=1)


def far_back(to: Written) -> Value:
    y = to.leaf(1, 4) @ to.leaf(4, 2)
    for _ in range(1000):
        y = joined(y, to.leaf(1, 4) @ to.leaf(4, 2), axis=0)
    return y


def of_another(to: Written) -> Value:
    one = to.leaf(7, 4) @ to.leaf(4, 2)
    return joined(one, to.leaf(7, 2), axis=1)


def sum_of_two(to: Written) -> Value:
    return (to.leaf(6, 4) @ to.leaf(4, 5)) + (to.leaf(6, 4) @ to.leaf(4, 5))


def bias_of_rows(to: Written) -> Value:
    return (to.leaf(5, 4) @ to.leaf(4, 5)) + to.leaf(5, 1)


def bias_of_several_rows(to: Written) -> Value:
    return (to.leaf(6, 4) @ to.leaf(4, 4)).reshape(shape=(3, 8)) + to.leaf(8)


def bias_of_one_number(to: Written) -> Value:
    return to.leaf(4) @ to.leaf(4) + to.leaf()


def whole_numbers(to: Written) -> Value:
    y = to.leaf(2, 3, 5, 4).cast(dtype=np.dtype("int64")) @ to.leaf(2, 3, 4, 6).cast(dtype=np.dtype("int64"))
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 18))


REFUSED = [
    *(read_twice, rows_apart, cast_by_cat, of_another, sum_of_two, bias_of_rows, bias_of_several_rows),
    *(bias_of_one_number, whole_numbers, product_cast_by_cat),
]


@pytest.mark.parametrize("write", REFUSED)
def test_what_a_product_cannot_write_stays(write: Callable[[Written], Value]) -> None:
    to = Written()
    graph = to.graph(write(to))
    assert laid(graph) is graph


def views_behind_it(to: Written) -> Value:
    y = to.leaf(4, 6).slice(starts=(0, 0), stops=(4, 4)).reshape(shape=(2, 2, 4))
    for _ in range(1000):
        y = y.transpose(axes=(1, 0, 2))
    return y @ to.leaf(4, 3)


@pytest.mark.parametrize("write", [far_back, views_behind_it])
def test_what_is_far_away_is_not_looked_for(write: Callable[[Written], Value]) -> None:
    """So much further than Python goes into one another."""
    to = Written()
    laid(to.graph(write(to)))


def test_a_bias_in_float64_stays() -> None:
    """Nobody says that a library of a card adds one."""
    to = Written("float64")
    graph = to.graph(with_bias(to))
    assert laid(graph) is graph


def test_what_loops_add_stays_theirs() -> None:
    to = Written()
    graph = to.graph(with_bias(to).tanh())
    assert laid(graph, {i for i, n in enumerate(graph.nodes) if n.op.name in {"add", "tanh"}}) is graph
    found = compiled_within(graph, PLENTY, 1, microkernels=False, few_launches=True)
    assert found is not None
    assert [step.op.name for step in found.plan.steps] == ["matmul", "reshape", "fused", "get_output"]


# ---------------------------------------------------------------- reshapes of what products read


def picked(k: int, whole: Value) -> Value:
    starts, stops = (k, 0, 0, 0, 0), (k + 1, 2, 3, 5, 4)
    return whole.slice(starts=starts, stops=stops).reshape(shape=(2, 3, 5, 4))


def of_queries_and_keys(to: Written) -> tuple[Value, Value]:
    whole = to.leaf(2, 5, 3, 3, 4).transpose(axes=(2, 0, 3, 1, 4))
    return picked(0, whole), picked(1, whole)


def test_a_reshape_that_products_read_is_a_view() -> None:
    to = Written()
    q, k = of_queries_and_keys(to)
    graph = to.graph(q @ k.transpose())
    found = laid(graph)
    assert copies(graph) == ["reshape"] * 2
    assert not copies(found)
    np.testing.assert_array_equal(to.computed(found)[0], to.computed(graph)[0])


def test_what_others_read_is_copied() -> None:
    to = Written()
    q, k = of_queries_and_keys(to)
    graph = to.graph(q @ k.transpose(), q.softmax(axis=3))
    found = laid(graph)
    assert copies(found) == ["reshape"]
    for one, other in zip(to.computed(found), to.computed(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_handed_out_is_copied() -> None:
    to = Written()
    q, _ = of_queries_and_keys(to)
    graph = to.graph(q, q @ q.transpose())
    assert laid(graph) is graph


def test_what_two_reshapes_would_copy_is_copied_once() -> None:
    to = Written()
    x = to.leaf(4, 6).transpose()
    graph = to.graph(x.reshape(shape=(3, 8)), x.reshape(shape=(24,)), x.reshape(shape=(2, 12)).tanh())
    found = laid(graph)
    assert copies(graph) == ["reshape"] * 3
    assert copies(found) == ["reshape"]
    for one, other in zip(to.computed(found), to.computed(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_no_strides_say_is_copied() -> None:
    to = Written()
    graph = to.graph(to.leaf(4, 6).transpose().reshape(shape=(3, 8)) @ to.leaf(8, 2))
    assert laid(graph) is graph


# ---------------------------------------------------------------- attention


def attended(to: Written, *mask: Value) -> Sequence[Value]:
    """y, and the logarithms of rows' sums."""
    of = [to.leaf(2, 3, 5, 4) for _ in range(3)]
    y = to.builder.emit(ROWS, (*of, *mask), {"scale": 0.5, "causal": False})
    return y.output(0), y.output(1)


def merged(y: Value) -> Value:
    return y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(10, 12))


def orders(graph: Graph) -> list[tuple[tuple[int, ...], ...]]:
    return [node.op.orders for node in graph.nodes if isinstance(node.op, PermutedResults)]


def test_attention_writes_heads_beside_one_another() -> None:
    """What else reads its result sees it as it was."""
    to = Written()
    y, lse = attended(to)
    graph = to.graph(merged(y) @ to.leaf(12, 3), (y * 2.0 + lse).tanh(), merged(y))
    found = laid(graph)
    assert not copies(found)
    assert orders(found) == [((0, 2, 1, 3), (0, 1, 2, 3))]
    for one, other in zip(to.computed(found), to.computed(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradients_of_attention_are_each_as_they_are_read() -> None:
    to = Written("float64")
    of, rows, g = [to.leaf(2, 3, 5, 4) for _ in range(3)], [to.leaf(2, 3, 5, 1) for _ in range(2)], to.leaf(2, 3, 5, 4)
    by = to.builder.emit(GRADIENTS, (*of, *rows, g), {"scale": 0.5, "causal": True})
    turned = by.output(2).transpose(axes=(2, 0, 1, 3)).reshape(shape=(5, 24))
    graph = to.graph(merged(by.output(0)), by.output(1), turned, by.output(2) * 2.0)
    found = laid(graph)
    assert not copies(found)
    assert orders(found) == [((0, 2, 1, 3), (0, 1, 2, 3), (2, 0, 1, 3))]
    for one, other in zip(to.computed(found), to.computed(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_of_two_orders_of_one_result_one_is_in_place() -> None:
    to = Written()
    of = [to.leaf(2, 3, 5, 4) for _ in range(3)]
    y = to.builder.emit(ROWS, of, {"scale": 0.5, "causal": False})
    turned = y.output(0).transpose(axes=(2, 0, 1, 3)).reshape(shape=(5, 24))
    graph = to.graph(merged(y.output(0)), turned)
    found = laid(graph)
    assert copies(found) == ["reshape"]
    for one, other in zip(to.computed(found), to.computed(graph), strict=True):
        np.testing.assert_array_equal(one, other)


def test_loops_are_where_they_were_behind_attention() -> None:
    to = Written()
    y, _ = attended(to)
    found = compiled_within(to.graph(merged(y), (y * 2.0).tanh()), PLENTY, 1, microkernels=False, few_launches=True)
    assert found is not None
    names = [step.op.name for step in found.plan.steps if not step.op.is_view]
    assert names == ["laid_results", "fused"]


def test_attention_that_cards_have_no_recipe_for_stays() -> None:
    masked, halved = Written(), Written("float16")
    for to, y in ((masked, attended(masked, masked.leaf(5, 5))[0]), (halved, attended(halved)[0])):
        graph = to.graph(merged(y))
        assert laid(graph) is graph


def test_columns_that_would_not_lie_side_by_side_are_copied() -> None:
    to = Written()
    graph = to.graph(attended(to)[0].transpose(axes=(0, 1, 3, 2)).reshape(shape=(6, 20)))
    assert laid(graph) is graph


# ---------------------------------------------------------------- within the memory of a plan


def test_where_there_is_no_memory_for_it_plans_are_as_they_were() -> None:
    """Both products need their operands at once."""
    to = Written()
    products = [to.leaf(2, 300).exp() @ to.leaf(300, 2) for _ in range(3)]
    graph = to.graph(joined(*products, axis=1))
    plain = compiled_within(graph, PLENTY, 1, microkernels=False)
    assert plain is not None
    within = [
        compiled_within(graph, most, 1, microkernels=False, few_launches=True)
        for most in (PLENTY, plain.plan.peak_bytes)
    ]
    names = [{step.op.name for step in each.plan.steps} for each in within if each is not None]
    assert ["laid_products" in each for each in names] == [True, False]


def test_loops_say_which_nodes_they_stand_for() -> None:
    """So that what these took without kernels is theirs, and the heaviest are compiled first."""
    to = Written()
    y, _ = attended(to)
    graph = to.graph((merged(y) @ to.leaf(12, 3)).exp().neg(), heads_merged(to).tanh())
    found = compiled_within(graph, PLENTY, 1, microkernels=False, few_launches=True)
    assert found is not None
    names = [[graph.nodes[i].op.name for i in s.op.nodes] for s in found.plan.steps if isinstance(s.op, Fused)]
    assert sorted(names) == [["exp", "neg"], ["tanh"]]


def test_a_plan_for_a_processor_has_none() -> None:
    to = Written()
    graph = to.graph(heads_merged(to).tanh())
    found = compiled_within(graph, PLENTY, 1, microkernels=False)
    assert found is not None
    assert not any(isinstance(step.op, StridedProducts) for step in found.plan.steps)
