"""Reuse of sums: which sums follow from others, that values agree, and how many are left to compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Graph, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp
from engine.compiler.plan import make_plan
from engine.compiler.sums import _DerivedSum, _Writer, reuse_sums
from engine.ir.passes import dce, optimise
from engine.ir.tensor_type import Shape
from engine.ops.reduce.sums import Rowwise

SHAPES = {"x": (3, 4, 5), "g": (3, 4, 5), "factor": (1, 4, 1), "row": (4, 1), "whole": ()}
AXES = (0, 2)


def leaves(dtype: str = "float64") -> dict[str, Value]:
    builder = Builder(registry())
    return {name: builder.leaf(TensorType(shape, np.dtype(dtype)), name) for name, shape in SHAPES.items()}


def total(x: Value, *, keepdims: bool = True) -> Value:
    return x.sum(axes=AXES, keepdims=keepdims)


def centred(x: Value) -> Value:
    return x - x.mean(axes=AXES, keepdims=True)


def along_rows(x: Value) -> Value:
    return x.mean(axes=(0,), keepdims=True)


def sums(graph: Graph) -> int:
    return sum(isinstance(node.op, Rowwise) for node in dce(graph).nodes)


def computed(graph: Graph, **instead: np.ndarray) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    feeds = {name: random.normal(size=shape) for name, shape in SHAPES.items()} | instead
    used = {name: array for name, array in feeds.items() if name in graph.feeds}
    return open_executor("cpu").run(make_plan(graph, Limits()), used)


DERIVED: dict[str, Callable[[dict[str, Value]], list[Value]]] = {
    "negative": lambda inputs: [total(inputs["g"]), total(-inputs["g"])],
    "times a number": lambda inputs: [total(inputs["g"]), total(inputs["g"] * 2.5)],
    "by a number": lambda inputs: [total(inputs["g"]), total(inputs["g"] / 2.5)],
    "times a factor": lambda inputs: [total(inputs["g"]), total(inputs["g"] * inputs["factor"])],
    "a factor times it": lambda inputs: [total(inputs["g"]), total(inputs["row"] * inputs["g"])],
    "by a factor": lambda inputs: [total(inputs["g"]), total(inputs["g"] / inputs["whole"])],
    "axes that go": lambda inputs: [
        total(inputs["g"], keepdims=False),
        total(inputs["g"] * inputs["factor"], keepdims=False),
    ],
    "a mean": lambda inputs: [total(inputs["g"]), (inputs["g"] * inputs["factor"]).mean(axes=AXES)],
    "and nothing": lambda inputs: [
        total(inputs["g"]),
        total(inputs["g"] * 3.0 + centred(inputs["x"]) * inputs["factor"]),
    ],
    "nothing and": lambda inputs: [total(inputs["g"]), total(centred(inputs["x"]) / inputs["factor"] + inputs["g"])],
    "less nothing": lambda inputs: [total(inputs["g"]), total(inputs["g"] - centred(inputs["x"]))],
    "nothing less": lambda inputs: [total(inputs["g"]), total(centred(inputs["x"]) - inputs["g"])],
    "of one that is known": lambda inputs: [
        total(inputs["g"]),
        total(-inputs["g"]),
        total(-inputs["g"] * inputs["factor"]),
    ],
}


@pytest.mark.parametrize("name", DERIVED)
def test_sum_of_a_multiple_is_derived(name: str) -> None:
    inputs = leaves()
    outputs = DERIVED[name](inputs)
    graph = outputs[0].builder.graph(outputs)
    reused = reuse_sums(graph)
    # Centring computes a mean, which tells whether all values are finite.
    assert sums(reused) == 1 + ("nothing" in name)
    assert [reused.nodes[i].type for i in reused.outputs] == [y.type for y in outputs]
    for one, other in zip(computed(reused), computed(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


INDEPENDENT: dict[str, Callable[[dict[str, Value]], list[Value]]] = {
    "a sum of two": lambda inputs: [total(inputs["g"]), total(inputs["x"]), total(inputs["g"] + inputs["x"])],
    "over other axes": lambda inputs: [inputs["g"].sum(axes=(0,)), total(-inputs["g"])],
    "a factor along the axes": lambda inputs: [total(inputs["g"]), (inputs["g"] * inputs["row"]).sum(axes=(0, 1))],
    "centred along others": lambda inputs: [
        total(inputs["g"]),
        total(inputs["g"] + inputs["x"] - inputs["x"].mean(axes=(0,), keepdims=True)),
    ],
    "by it": lambda inputs: [total(inputs["g"]), total(inputs["whole"] / inputs["g"])],
    "a square": lambda inputs: [total(inputs["g"]), total(inputs["g"] * inputs["g"])],
    "behind it": lambda inputs: [total(-inputs["g"] * inputs["factor"]), total(inputs["g"])],
    "a product": lambda inputs: [inputs["g"].prod(axes=AXES), (-inputs["g"]).prod(axes=AXES)],
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_sums_are_computed(name: str) -> None:
    outputs = INDEPENDENT[name](leaves())
    graph = outputs[0].builder.graph(outputs)
    assert reuse_sums(graph) is graph


@pytest.mark.parametrize("name", ["and nothing", "nothing and", "less nothing", "nothing less"])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_derived_sum_propagates_non_finite_values(name: str, wrong: float) -> None:
    inputs = leaves()
    outputs = DERIVED[name](inputs)
    graph = outputs[0].builder.graph(outputs)
    x = np.ones(SHAPES["x"])
    x[1, 2, 3] = wrong
    _, actual = computed(reuse_sums(graph), x=x)
    _, expected = computed(graph, x=x)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    assert np.isnan(expected).sum() == 1


def test_search_for_derived_sums_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph has 2²⁰ paths."""
    inputs, visited = leaves(), list[int]()
    y = inputs["g"]
    for _ in range(20):
        y = y + y
    graph = y.builder.graph([total(inputs["x"]), total(y)])
    original = _Writer._derive

    def counted(writer: _Writer, i: int, axes: Shape) -> _DerivedSum | None:
        visited.append(i)
        return original(writer, i, axes)

    monkeypatch.setattr(_Writer, "_derive", counted)
    assert reuse_sums(graph) is graph
    assert len(visited) < 1000


def test_float16_sums_are_not_derived() -> None:
    """They would be rounded once more."""
    g = leaves("float16")["g"]
    graph = g.builder.graph([total(g), total(g * 3.0)])
    assert reuse_sums(graph) is graph


def test_batch_norm_backward_computes_three_sums() -> None:
    """With respect to bias, weight and variance; the one for the mean follows from these."""
    builder = Builder(registry())
    x, weight, bias, g = (
        builder.leaf(TensorType(shape, np.dtype("float64")), name)
        for name, shape in {"x": (3, 4, 5, 2), "w": (4,), "b": (4,), "g": (3, 4, 5, 2)}.items()
    )
    y = x.batch_norm(weight, bias)
    gradients = vjp(builder, [(y, g)], [x, weight, bias])
    graph = optimise(builder.graph([y, *(each for each in gradients if each is not None)]))
    assert sums(graph) == 2 + 4
    assert sums(reuse_sums(graph)) == 2 + 3
