"""Of random graphs, what is foreseen of sweeps over sweeps is what they write, node by node, or where counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Builder, Limits, TensorType, Value, registry
from engine.graph.errors import TooManyNodes
from engine.graph.ir import ancestors
from engine.graph.limits import NO_DEADLINE
from engine.oplib.elementwise import Elementwise
from engine.transforms.forms import Forms
from engine.transforms.sketch import Sketch
from engine.transforms.vjp import Cotangents, vjp
from tests.contract.cases import Case, each, has_rule
from tests.engine.transforms.sketched import assert_alike, indices

pytestmark = pytest.mark.slow

DTYPES = ("float16", "float32", "float64")
LIMITS = Limits()
some = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

Grown = Callable[[Value, Value], Value]
#: of a matrix of two rows and columns, and another: matrices again
GROWN: tuple[Grown, ...] = (
    lambda a, b: a.sin(),
    lambda a, b: a.exp(),
    lambda a, b: a.neg(),
    lambda a, b: a.identity(),
    lambda a, b: a.transpose(axes=(1, 0)),
    lambda a, b: a.softmax(axis=-1),
    lambda a, b: a.cumsum(axis=0),
    lambda a, b: a + b,
    lambda a, b: a + a,
    lambda a, b: a * b,
    lambda a, b: a * a,
    lambda a, b: a / b,
    lambda a, b: a @ b,
    lambda a, b: (a > b).where(a, b),
    lambda a, b: a.where(b, b.sin()),
    lambda a, b: a.maximum(b),
    lambda a, b: a * b.sum(axes=(0,)),
    lambda a, b: a.sign(),
    lambda a, b: a * b.stop_gradient(),
    lambda a, b: a.argsort(axis=0).cast(dtype="float64"),
    lambda a, b: a.cast(dtype="float16"),
    lambda a, b: a.cast(dtype="float32"),
    lambda a, b: a.cast(dtype="float64"),
    lambda a, b: a.sum(axes=()).broadcast_to(shape=(2, 2)),
)
#: the same, of ops of several results, of which some are read, or all, and in either order
SPLIT: tuple[Grown, ...] = (
    lambda a, b: a.split(sizes=(1, 1), axis=0).output(1) + b,
    lambda a, b: halves(a.split(sizes=(1, 1), axis=0)),
    lambda a, b: halves(a.chunk(chunks=2, axis=0)).cast(dtype="float32"),
    lambda a, b: b * a.cast(dtype="float64").slogdet().output(1),
    lambda a, b: determinant(a.cast(dtype="float64").slogdet()) * b,
    lambda a, b: a.topk(k=2, axis=1).output(0),
    lambda a, b: indexed(a.topk(k=2, axis=1)),
)


def halves(both: Value) -> Value:
    return both.output(1).cat(both.output(0), axis=0)


def determinant(found: Value) -> Value:
    return found.output(0) * found.output(1).exp()


def indexed(found: Value) -> Value:
    return found.output(0) * found.output(1).cast(dtype="float32")


@st.composite
def graphs(draw: Any, growth: Sequence[Grown] = GROWN + SPLIT) -> tuple[Builder, list[Value]]:
    """Nodes of which many are read twice and some never; and those that gradients can be of and by."""
    builder = Builder(registry())
    made = [builder.leaf(TensorType((2, 2), np.dtype(draw(st.sampled_from(DTYPES)))), i) for i in range(2)]
    for _ in range(draw(st.integers(1, 12))):
        a, b = (draw(st.sampled_from(made[-5:])) for _ in range(2))
        made.append(draw(st.sampled_from(growth))(a, b))
    return builder, [value for value in made if value.type.is_differentiable]


def sketch_of(builder: Builder, nodes: int = LIMITS.nodes) -> Sketch:
    return Sketch(registry(), Limits(nodes=nodes), NO_DEADLINE, builder.nodes)


def chosen(draw: Any, values: Sequence[Value]) -> list[Value]:
    return draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))


def seeded(builder: Builder, outputs: Sequence[Value]) -> list[tuple[Value, Value]]:
    return [(y, builder.leaf(y.type, ("seed", len(builder.nodes)))) for y in outputs]


def pulled(builder: Builder, sketch: Sketch, outputs: Sequence[Value], wrt: Sequence[Value]) -> list[Value]:
    """Gradients of some nodes, both ways, which write the same; those that there are."""
    seeds = seeded(builder, outputs)
    pairs = [(y.index, sketch.leaf(y.index)) for y, _ in seeds]
    found = vjp(builder, seeds, wrt)
    assert sketch.vjp(pairs, [x.index for x in wrt]) == indices(found)
    assert_alike(sketch, builder)
    return [g for g in found if g is not None]


@some
@given(graphs(), st.data())
def test_three_sweeps_over_one_another(drawn: tuple[Builder, list[Value]], data: Any) -> None:
    """By the same nodes or others, and of what the sweep before has written."""
    builder, values = drawn
    sketch = sketch_of(builder)
    wrt = chosen(data.draw, values)
    for _ in range(3):
        values += pulled(builder, sketch, chosen(data.draw, values[-4:]), wrt)
        wrt = wrt if data.draw(st.booleans()) else chosen(data.draw, values)


@some
@given(graphs(), st.data())
def test_a_count_is_what_is_written(drawn: tuple[Builder, list[Value]], data: Any) -> None:
    """To the last node: it is refused with one less."""
    builder, values = drawn
    outputs, wrt = chosen(data.draw, values), chosen(data.draw, values)
    seeds = seeded(builder, outputs)
    nodes = list(builder.nodes)
    vjp(builder, seeds, wrt)
    pairs, by, before = [(y.index, g.index) for y, g in seeds], [x.index for x in wrt], Builder(registry(), nodes=nodes)
    sketch_of(before, len(builder.nodes)).count(pairs, by)
    if len(builder.nodes) > len(nodes):
        with pytest.raises(TooManyNodes):
            sketch_of(before, len(builder.nodes) - 1).count(pairs, by)


def summing(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Filled with the numbers of nodes that are casts and sums of cotangents, as these are written."""
    written = set[int]()
    add = Cotangents.add

    def noted(self: Cotangents, *args: Any) -> None:
        before = len(self._nodes)
        add(self, *args)
        written.update(range(before, len(self._nodes)))

    monkeypatch.setattr(Cotangents, "add", noted)
    return written


def between(builder: Builder, seeds: Sequence[Value], ends: Sequence[Value]) -> set[int]:
    """Elementwise nodes that depend on one of the seeds, and that one of the ends depends on."""
    nodes, moved = builder.nodes, {g.index for g in seeds}
    for i in ancestors([g.index for g in ends], lambda i: nodes[i].operands):
        if not moved.isdisjoint(nodes[i].operands):
            moved.add(i)
    back = ancestors([g.index for g in ends], lambda i: nodes[i].operands)
    return {i for i in back if i in moved and isinstance(nodes[i].op, Elementwise)} - {g.index for g in seeds}


def assert_swept(builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], *, all_of_it: bool) -> None:
    """No more is counted than the nodes that are written, and those of them that are swept and elementwise."""
    seeds = seeded(builder, outputs)
    before = Builder(registry(), nodes=list(builder.nodes))
    with pytest.MonkeyPatch.context() as patch:
        sums = summing(patch)
        found = [g for g in vjp(builder, seeds, wrt) if g is not None]
    total = len(builder.nodes) + len(between(builder, [g for _, g in seeds], found) - sums)
    pairs, by = [(y.index, g.index) for y, g in seeds], [x.index for x in wrt]
    sketch_of(before, total).count(pairs, by, swept=True)
    if all_of_it and total > len(before.nodes):
        with pytest.raises(TooManyNodes):
            sketch_of(before, total - 1).count(pairs, by, swept=True)


@some
@given(graphs(GROWN), st.data())
def test_what_is_swept_counts_twice_where_it_is_elementwise(drawn: tuple[Builder, list[Value]], data: Any) -> None:
    builder, values = drawn
    assert_swept(builder, chosen(data.draw, values), chosen(data.draw, values), all_of_it=True)


@some
@given(graphs(), st.data())
def test_of_several_results_no_more_is_counted(drawn: tuple[Builder, list[Value]], data: Any) -> None:
    builder, values = drawn
    assert_swept(builder, chosen(data.draw, values), chosen(data.draw, values), all_of_it=False)


def test_what_is_swept_ends_where_a_rule_gives_nothing() -> None:
    """A condition has no gradient, though the result depends on it."""
    builder = Builder(registry())
    x, a = (builder.leaf(TensorType((2, 2), np.dtype("float64")), i) for i in range(2))
    assert_swept(builder, [x.where(a, a.sin()).exp().square()], [x], all_of_it=True)


def test_what_is_swept_ends_where_a_rule_passes_over_what_arrived() -> None:
    """The sign of a determinant has no gradient, though it is read beside the logarithm, which has one."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 2), np.dtype("float64")), 0)
    assert_swept(builder, [determinant(x.slogdet()) * x], [x], all_of_it=False)


def test_what_is_swept_is_counted_from_the_first_node_of_a_rule_on() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 2), np.dtype("float64")), 0)
    assert_swept(builder, [(x.sin() * x.exp()).exp()], [x], all_of_it=True)
    assert_swept(builder, [x.exp() @ x.transpose(axes=(1, 0)).exp()], [x], all_of_it=True)


@each(has_rule)
def test_whatever_a_rule_gives_depends_on_what_has_arrived(case: Case) -> None:
    """Else none of what is swept would be counted twice."""
    forms = Forms(registry())
    for number in forms.of_all(case.write(case.arrays()).builder.nodes):
        form = forms.forms[number]
        if form.passes:
            forms.pull(number, tuple([type.is_differentiable for type in form.node.types]))
    assert all(given.way is not None for rule in forms.written for given in rule.given)
