"""Constant folding: nodes of constants are computed once, within bounds; nodes that fail are left for the run."""

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
    """The op of the only output, and the value it holds."""
    (output,) = graph.outputs
    node = graph.nodes[output]
    return node.op.name, node.attrs.get("value", node.attrs.get("fill"))


def test_constant_tensor_is_folded(builder: Builder) -> None:
    name, value = last(fold(builder.graph([constant(builder, [1.0, 2.0]).square().neg()])))
    assert name == "constant"
    assert value.tolist() == [-1.0, -4.0]
    assert not value.flags.writeable


def test_uniform_result_is_a_full(builder: Builder) -> None:
    x = builder.full((2, 3), 3.0, np.dtype("float32"))
    graph = fold(builder.graph([x.square()]))
    assert last(graph) == ("full", 9.0)
    assert graph.nodes[graph.outputs[0]].type == x.type


def test_feeds_are_not_folded(builder: Builder) -> None:
    x = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
    graph = builder.graph([x + constant(builder, [1.0, 2.0])])
    assert fold(graph).nodes == graph.nodes


@pytest.mark.parametrize("fill", [0.0, -1.0, np.inf])
def test_nan_and_infinity_are_not_folded(builder: Builder, fill: float) -> None:
    graph = builder.graph([builder.full((2,), fill, np.dtype("float64")).log().sqrt()])
    assert last(fold(graph))[0] == "sqrt"


def test_infinite_constant_is_unchanged(builder: Builder) -> None:
    graph = builder.graph([builder.full((2,), np.inf, np.dtype("float64"))])
    assert last(fold(graph)) == ("full", np.inf)


def test_failing_node_is_not_folded(builder: Builder) -> None:
    index = constant(builder, [0, 5])
    graph = builder.graph([constant(builder, [1.0, 2.0]).gather(index, axis=0)])
    assert last(fold(graph))[0] == "gather"


def test_large_results_are_not_folded(builder: Builder) -> None:
    size = MOST_BYTES // 8
    fits = builder.graph([builder.full((size,), 2.0, np.dtype("float64")).square()])
    assert last(fold(fits)) == ("full", 4.0)
    builder = Builder(registry())
    larger = builder.graph([builder.full((size + 1,), 2.0, np.dtype("float64")).square()])
    assert last(fold(larger))[0] == "square"


def test_graph_over_the_flop_allowance_is_not_folded(builder: Builder) -> None:
    graph = builder.graph([builder.full((10,), 2.0, np.dtype("float64")).square().square()])
    flops = 20
    assert last(fold(graph, Allowance(flops=flops))) == ("full", 16.0)
    assert fold(graph, Allowance(flops=flops - 1)) is graph


def test_total_bytes_of_folded_values_are_bounded(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_BYTES_IN_ALL", 3 * 80)
    x = constant(builder, np.arange(10.0))
    folded = fold(builder.graph([x.square(), x.neg(), x.exp()]))
    names = [folded.nodes[i].op.name for i in folded.outputs]
    assert names == ["constant", "constant", "exp"]


def test_fold_checks_the_deadline() -> None:
    assert_stops(lambda graph, deadline: fold(graph, Allowance(deadline=deadline)))
