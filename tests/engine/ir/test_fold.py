"""Constant folding: what depends on constants alone is computed once, within bounds; what fails is left to fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Graph, TensorType, Value, registry
from engine.ir import passes as folding
from engine.ir.passes import MOST_BYTES, Allowance, fold
from tests.engine.ir.deadlines import assert_stops


@pytest.fixture
def builder() -> Builder:
    return Builder(registry())


def constant(builder: Builder, value: Any) -> Value:
    return builder.emit(registry().ops["constant"], (), {"value": np.asarray(value)})


def last(graph: Graph) -> tuple[str, Any]:
    """Op of the only output, and what it holds."""
    (output,) = graph.outputs
    node = graph.nodes[output]
    return node.op.name, node.attrs.get("value", node.attrs.get("fill"))


def test_a_tensor_is_computed(builder: Builder) -> None:
    name, value = last(fold(builder.graph([constant(builder, [1.0, 2.0]).square().neg()])))
    assert name == "constant"
    assert value.tolist() == [-1.0, -4.0]
    assert not value.flags.writeable


def test_one_number_everywhere_is_a_full(builder: Builder) -> None:
    x = builder.full((2, 3), 3.0, np.dtype("float32"))
    graph = fold(builder.graph([x.square()]))
    assert last(graph) == ("full", 9.0)
    assert graph.nodes[graph.outputs[0]].type == x.type


def test_what_is_fed_is_not_known(builder: Builder) -> None:
    x = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
    graph = builder.graph([x + constant(builder, [1.0, 2.0])])
    assert fold(graph).nodes == graph.nodes


@pytest.mark.parametrize("fill", [0.0, -1.0, np.inf])
def test_what_gives_nan_or_infinity_is_left_to_be_found(builder: Builder, fill: float) -> None:
    graph = builder.graph([builder.full((2,), fill, np.dtype("float64")).log().sqrt()])
    assert last(fold(graph))[0] == "sqrt"


def test_infinity_itself_is_a_number_like_others(builder: Builder) -> None:
    graph = builder.graph([builder.full((2,), np.inf, np.dtype("float64"))])
    assert last(fold(graph)) == ("full", np.inf)


def test_what_is_refused_is_left_to_be_refused(builder: Builder) -> None:
    index = constant(builder, [0, 5])
    graph = builder.graph([constant(builder, [1.0, 2.0]).gather(index, axis=0)])
    assert last(fold(graph))[0] == "gather"


def test_nothing_large_is_made(builder: Builder) -> None:
    size = MOST_BYTES // 8
    fits = builder.graph([builder.full((size,), 2.0, np.dtype("float64")).square()])
    assert last(fold(fits)) == ("full", 4.0)
    builder = Builder(registry())
    larger = builder.graph([builder.full((size + 1,), 2.0, np.dtype("float64")).square()])
    assert last(fold(larger))[0] == "square"


def test_a_graph_over_its_arithmetic_keeps_all_of_it_for_the_plan(builder: Builder) -> None:
    graph = builder.graph([builder.full((10,), 2.0, np.dtype("float64")).square().square()])
    flops = 20
    assert last(fold(graph, Allowance(flops=flops))) == ("full", 16.0)
    assert fold(graph, Allowance(flops=flops - 1)) is graph


def test_all_values_together_are_bounded(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_BYTES_IN_ALL", 3 * 80)
    x = constant(builder, np.arange(10.0))
    folded = fold(builder.graph([x.square(), x.neg(), x.exp()]))
    names = [folded.nodes[i].op.name for i in folded.outputs]
    assert names == ["constant", "constant", "exp"]


def test_the_time_is_looked_at() -> None:
    assert_stops(lambda graph, deadline: fold(graph, Allowance(deadline=deadline)))
