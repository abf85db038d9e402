"""Sweeps as arrays: a place for each result of each node, which cotangents arrive, and which nodes are swept over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.graph.limits import NO_LIMITS
from engine.ops import attention
from engine.transforms.forms import Forms
from engine.transforms.pullback import Downstream, Outlined, Places, Pullback
from engine.transforms.ragged import Ragged, ints
from engine.transforms.vjp import vjp

F64 = np.dtype("float64")


def outlined(builder: Builder) -> tuple[Outlined, Forms]:
    forms = Forms(builder.registry)
    return Outlined(ints(forms.of_all(builder.nodes)), Ragged.of(node.operands for node in builder.nodes)), forms


def pullback(builder: Builder, y: Value, wrt: Sequence[Value]) -> Pullback:
    """That of one node, whose own cotangent is a leaf."""
    seed = builder.leaf(y.type, "seed")
    return Pullback(*outlined(builder), [(y.index, seed.index)], Downstream([x.index for x in wrt]))


def test_each_result_of_each_node_has_a_place_of_its_own() -> None:
    """The first ones that of the node, the others behind all nodes, in their order; from each there is a way back."""
    builder = Builder(registry(), NO_LIMITS)
    x = builder.leaf(TensorType((4, 4), F64), "x")
    builder.append(x.svd().node)
    x.exp().split(sizes=(1, 3), axis=0)
    builder.append(x.slogdet().node)
    counts = [len(node.types) for node in builder.nodes]
    assert max(counts) == 3
    nodes = ints(index for index, count in enumerate(counts) for _ in range(count))
    results = ints(chain.from_iterable(map(range, counts)))
    places = Places(*outlined(builder))
    found = places.of(nodes, results)
    assert found[results == 0].tolist() == list(range(len(counts)))
    assert found[results != 0].tolist() == list(range(len(counts), sum(counts)))
    assert places.count == sum(counts)
    assert list(chain.from_iterable(map(places.of_node, range(len(counts))))) == found.tolist()
    back = places.where(found)
    assert (back[0].tolist(), back[1].tolist()) == (nodes.tolist(), results.tolist())


def test_what_is_elementwise_on_the_way_is_swept_over() -> None:
    """For each exponential a product; a sum's way back, which is none, writes no such node."""
    builder = Builder(registry(), NO_LIMITS)
    x = builder.leaf(TensorType((3,), F64), "x")
    assert pullback(builder, x.exp().sum(axes=(0,)).exp(), [x]).mapped() == 2


@pytest.mark.parametrize("by", range(3))
def test_a_cotangent_arrives_at_each_operand_of_an_op_of_several_results(
    by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of attention that is not held in memory."""
    monkeypatch.setattr(attention, "SCORES_HELD", 0)
    monkeypatch.setattr(attention, "OUTWEIGHED", 0)
    builder = Builder(registry(), NO_LIMITS)
    leaves = [builder.leaf(TensorType(shape, F64), shape) for shape in ((3, 2), (4, 2), (4, 5))]
    q, k, v = (x.sin() for x in leaves)
    y = q.attention(k, v)
    sweep = pullback(builder, y, leaves)
    assert any(len(node.types) > 1 and len(node.operands) > 2 for node in builder.nodes)
    assert sweep.arrived[leaves[by].index]
    start = len(builder.nodes)
    vjp(builder, [(y, builder.value(start - 1))], leaves)
    assert sweep.count == len(builder.nodes) - start
