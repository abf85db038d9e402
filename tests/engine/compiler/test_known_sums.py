"""Sums that follow from others: which, that they are as large, and what is left to be computed for them."""

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


KNOWN: dict[str, Callable[[dict[str, Value]], list[Value]]] = {
    "negative": lambda of: [total(of["g"]), total(-of["g"])],
    "times a number": lambda of: [total(of["g"]), total(of["g"] * 2.5)],
    "by a number": lambda of: [total(of["g"]), total(of["g"] / 2.5)],
    "times a factor": lambda of: [total(of["g"]), total(of["g"] * of["factor"])],
    "a factor times it": lambda of: [total(of["g"]), total(of["row"] * of["g"])],
    "by a factor": lambda of: [total(of["g"]), total(of["g"] / of["whole"])],
    "axes that go": lambda of: [total(of["g"], keepdims=False), total(of["g"] * of["factor"], keepdims=False)],
    "a mean": lambda of: [total(of["g"]), (of["g"] * of["factor"]).mean(axes=AXES)],
    "and nothing": lambda of: [total(of["g"]), total(of["g"] * 3.0 + centred(of["x"]) * of["factor"])],
    "nothing and": lambda of: [total(of["g"]), total(centred(of["x"]) / of["factor"] + of["g"])],
    "less nothing": lambda of: [total(of["g"]), total(of["g"] - centred(of["x"]))],
    "nothing less": lambda of: [total(of["g"]), total(centred(of["x"]) - of["g"])],
    "of one that is known": lambda of: [total(of["g"]), total(-of["g"]), total(-of["g"] * of["factor"])],
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_multiple_is_not_added_up(name: str) -> None:
    of = leaves()
    outputs = KNOWN[name](of)
    graph = outputs[0].builder.graph(outputs)
    found = reuse_sums(graph)
    # What is centred has a mean, which says whether all is finite.
    assert sums(found) == 1 + ("nothing" in name)
    assert [found.nodes[i].type for i in found.outputs] == [y.type for y in outputs]
    for one, other in zip(computed(found), computed(graph), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


OTHERS: dict[str, Callable[[dict[str, Value]], list[Value]]] = {
    "a sum of two": lambda of: [total(of["g"]), total(of["x"]), total(of["g"] + of["x"])],
    "over other axes": lambda of: [of["g"].sum(axes=(0,)), total(-of["g"])],
    "a factor along the axes": lambda of: [total(of["g"]), (of["g"] * of["row"]).sum(axes=(0, 1))],
    "centred along others": lambda of: [
        total(of["g"]),
        total(of["g"] + of["x"] - of["x"].mean(axes=(0,), keepdims=True)),
    ],
    "by it": lambda of: [total(of["g"]), total(of["whole"] / of["g"])],
    "a square": lambda of: [total(of["g"]), total(of["g"] * of["g"])],
    "behind it": lambda of: [total(-of["g"] * of["factor"]), total(of["g"])],
    "a product": lambda of: [of["g"].prod(axes=AXES), (-of["g"]).prod(axes=AXES)],
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_stay(name: str) -> None:
    outputs = OTHERS[name](leaves())
    graph = outputs[0].builder.graph(outputs)
    assert reuse_sums(graph) is graph


@pytest.mark.parametrize("name", ["and nothing", "nothing and", "less nothing", "nothing less"])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_of_what_is_not_finite_something_is_left(name: str, wrong: float) -> None:
    of = leaves()
    outputs = KNOWN[name](of)
    graph = outputs[0].builder.graph(outputs)
    x = np.ones(SHAPES["x"])
    x[1, 2, 3] = wrong
    _, found = computed(reuse_sums(graph), x=x)
    _, known = computed(graph, x=x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(known))
    assert np.isnan(known).sum() == 1


def test_of_all_ways_back_some_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 2²⁰ of them."""
    of, gone = leaves(), list[int]()
    y = of["g"]
    for _ in range(20):
        y = y + y
    graph = y.builder.graph([total(of["x"]), total(y)])
    known = _Writer._derive

    def counted(writer: _Writer, i: int, axes: Shape) -> _DerivedSum | None:
        gone.append(i)
        return known(writer, i, axes)

    monkeypatch.setattr(_Writer, "_derive", counted)
    assert reuse_sums(graph) is graph
    assert len(gone) < 1000


def test_halves_stay() -> None:
    """They would be rounded once more."""
    g = leaves("float16")["g"]
    graph = g.builder.graph([total(g), total(g * 3.0)])
    assert reuse_sums(graph) is graph


def test_the_way_back_of_normalisation_adds_up_three_tensors() -> None:
    """By bias, weight and variance; what reaches the mean is known from these."""
    builder = Builder(registry())
    x, weight, bias, g = (
        builder.leaf(TensorType(shape, np.dtype("float64")), name)
        for name, shape in {"x": (3, 4, 5, 2), "w": (4,), "b": (4,), "g": (3, 4, 5, 2)}.items()
    )
    y = x.batch_norm(weight, bias)
    found = vjp(builder, [(y, g)], [x, weight, bias])
    graph = optimise(builder.graph([y, *(each for each in found if each is not None)]))
    assert sums(graph) == 2 + 4
    assert sums(reuse_sums(graph)) == 2 + 3
