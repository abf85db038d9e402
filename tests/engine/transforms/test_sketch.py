"""What is foreseen of gradients is what they write, node by node; and what is too much is refused unwritten."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import LATEST, Builder, Limits, Program, Statement, TensorType, Value, registry
from engine.calls import HVP, JVP, VJP, Call, Gradients, Hessian, Jacobian
from engine.graph.errors import BadAttribute, TooManyNodes
from engine.graph.limits import NO_DEADLINE
from engine.ops import attention
from engine.planning.compiler import write_call
from engine.transforms import expand_grad as expanding
from engine.transforms import sketch as sketches
from engine.transforms.expand_grad import expand_grad
from engine.transforms.jvp import jvp
from engine.transforms.sketch import Sketch
from engine.transforms.vjp import vjp
from tests.contract.cases import ONCE, Case, Written, all_cases, aspects, complex_cases, each, has_rule
from tests.engine.transforms.sketched import assert_alike, indices
from tests.sampling import sampled

LIMITS = Limits()
F64 = np.dtype("float64")


def of_a_width(written: tuple[str, Case]) -> Iterator[Hashable]:
    """Of the wide ones each is another; of the narrow ones, as their aspects are."""
    dtype, case = written
    yield from [case] if dtype == "float64" else aspects(case)


WRITTEN = sampled(product(["float64", "float16"], filter(has_rule, (*all_cases(), *complex_cases()))), of_a_width)


def sketch_of(builder: Builder) -> Sketch:
    return Sketch(registry(), LIMITS, NO_DEADLINE, builder.nodes)


def swept(written: Written, sketch: Sketch, outputs: Sequence[Value]) -> list[Value | None]:
    """Gradients of some nodes by all operands, both ways."""
    builder, wrt = written.builder, written.float_operands
    seeds = [(y, builder.leaf(y.type, ("seed", y.index))) for y in outputs]
    pairs = [(y.index, sketch.leaf(y.index)) for y in outputs]
    assert [g.index for _, g in seeds] == [g for _, g in pairs]
    found = vjp(builder, seeds, wrt)
    assert sketch.vjp(pairs, [x.index for x in wrt]) == indices(found)
    return found


@pytest.mark.parametrize(("dtype", "case"), WRITTEN, ids=str)
def test_what_is_foreseen_is_what_is_written(dtype: str, case: Case) -> None:
    """To second order; and along tangents, of which the last sweep is only counted."""
    written = case.write(case.arrays(dtype))
    sketch = sketch_of(written.builder)
    gradients = swept(written, sketch, written.float_outputs)
    assert_alike(sketch, written.builder)
    floats = [i for i, x in enumerate(written.operands) if x.type.is_differentiable]
    twice = [g for i, g in zip(floats, gradients, strict=True) if i not in ONCE.get(case.op.name, ())]
    swept(written, sketch, [g for g in twice if g is not None])
    assert_alike(sketch, written.builder)
    tangents = [(x, written.builder.leaf(x.type, ("tangent", x.index))) for x in written.float_operands]
    nodes = list(written.builder.nodes)
    jvp(written.builder, written.float_outputs, tangents)
    total = len(written.builder.nodes)
    outputs, wrt = ([value.index for value in values] for values in (written.float_outputs, written.float_operands))
    Sketch(registry(), Limits(nodes=total), NO_DEADLINE, nodes).jvp(outputs, wrt)
    with pytest.raises(TooManyNodes):
        Sketch(registry(), Limits(nodes=total - 1), NO_DEADLINE, nodes).jvp(outputs, wrt)


def foreseen(builder: Builder, y: Value, wrt: Sequence[Value]) -> int:
    """How many nodes there are once a gradient is written, which is foreseen; no more are admitted than that."""
    nodes, seed = list(builder.nodes), builder.leaf(y.type, "seed")
    found = vjp(builder, [(y, seed)], wrt)
    total, by = len(builder.nodes), [x.index for x in wrt]
    sketch = Sketch(registry(), Limits(nodes=total), NO_DEADLINE, nodes)
    assert sketch.vjp([(y.index, sketch.leaf(y.index))], by) == indices(found)
    assert_alike(sketch, builder)
    short = Sketch(registry(), Limits(nodes=total - 1), NO_DEADLINE, nodes)
    with pytest.raises(TooManyNodes):
        short.vjp([(y.index, short.leaf(y.index))], by)
    return total


def test_sums_at_one_of_several_results() -> None:
    """Of another shape than the first, of what depends on the operand, and with single results on both sides."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((4, 2), F64), "x")
    parts = x.sin().split(sizes=(1, 3), axis=0)
    u, v = parts.output(1), parts.output(1)
    foreseen(builder, ((u * v).sum(axes=(0,)) * parts.output(0)).exp(), [x])


def test_only_the_last_of_several_results() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((6,), F64), "x")
    first, second = (part.split(sizes=(1, 2, 3), axis=0) for part in (x.sin(), x.exp()))
    foreseen(builder, first.output(2) * second.output(2), [x])


def test_sums_of_what_is_cast() -> None:
    """Of a float32 operand beside a float64 one, twice, where what reads it reads on."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), np.dtype("float32")), "x")
    z, narrow = builder.leaf(TensorType((3,), F64), "z"), x.sin()
    foreseen(builder, (narrow + z) * (narrow * z), [x, z])


@pytest.mark.parametrize(("grads", "times"), [(0, None), (1, 3), (2, 9)])
def test_expand_grad_looks_at_three_times_as_much_for_each_gradient(
    grads: int, times: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a graph without any, at nothing."""
    told = list[int]()
    monkeypatch.setattr(expanding, "look_ahead", lambda builder, work, look: told.append(work))
    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), F64), "x")
    y = x.tanh()
    for _ in range(grads):
        y = y.grad(x)
    graph = builder.graph([y])
    expand_grad(graph)
    assert told == ([] if times is None else [times * len(graph.nodes)])


@pytest.fixture
def by_tiles(monkeypatch: pytest.MonkeyPatch) -> tuple[Builder, list[Value], Value]:
    """Attention that is not held in memory: ops of several results and of several operands."""
    monkeypatch.setattr(attention, "SCORES_HELD", 0)
    monkeypatch.setattr(attention, "OUTWEIGHED", 0)
    builder = Builder(registry())
    shapes = {"q": (3, 2), "k": (4, 2), "v": (4, 5), "mask": (3, 4)}
    leaves = [builder.leaf(TensorType(shape, F64), name) for name, shape in shapes.items()]
    q, k, v, mask = (x.sin() for x in leaves)
    return builder, leaves, q.attention(k, v, mask)


def test_attention_by_tiles_to_second_order(by_tiles: tuple[Builder, list[Value], Value]) -> None:
    """By each operand: a cotangent arrives at the first result alone, and then at each of the way back's."""
    builder, leaves, y = by_tiles
    assert "attention_rows" in {node.op.name for node in builder.nodes}
    total = foreseen(builder, y, leaves)
    assert "attention_gradients" in {node.op.name for node in builder.nodes}
    gradients = [g for g in vjp(builder, [(y, y.full_like(1.0))], leaves) if g is not None]
    for g in gradients:
        total = foreseen(builder, g, leaves)
    assert total == len(builder.nodes)


def test_where_a_rule_gives_what_no_cotangent_is_in_none_is_counted_twice(
    by_tiles: tuple[Builder, list[Value], Value],
) -> None:
    """Of attention's way back, where but one of its results is read."""
    builder, (q, _, v, _), y = by_tiles
    (by_v,) = vjp(builder, [(y, y.full_like(1.0))], [v])
    assert by_v is not None
    sketch = sketch_of(builder)
    sweep = sketch._sweep(sketch._outlined(), [(by_v.index, sketch.leaf(by_v.index))], [q.index])
    assert not sweep.stencils.depends.all()
    assert sweep.mapped() == 0


@pytest.mark.parametrize(("how", "most"), [({}, 1), ({"swept": False}, 1), ({"swept": True}, 2)])
def test_a_product_counts_once_more_where_it_is_swept(how: dict[str, bool], most: int) -> None:
    """That with an exponential, which is all that its rule writes."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), F64), "x")
    y = x.exp()
    seed = builder.leaf(y.type, "seed")
    total, pairs = len(builder.nodes) + most, [(y.index, seed.index)]
    Sketch(registry(), Limits(nodes=total), NO_DEADLINE, builder.nodes).count(pairs, [x.index], **how)
    with pytest.raises(TooManyNodes):
        Sketch(registry(), Limits(nodes=total - 1), NO_DEADLINE, builder.nodes).count(pairs, [x.index], **how)


def test_what_a_rule_refuses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise BadAttribute("no derivative")

    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), F64), "x")
    y = x.sin()
    monkeypatch.setattr(type(y.node.op), "vjp", refuse)
    sketch = sketch_of(builder)
    with pytest.raises(BadAttribute, match="no derivative"):
        sketch.vjp([(y.index, sketch.leaf(y.index))], [x.index])


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def nested(depth: int) -> Program:
    """Gradients of gradients of functions that grow."""
    lines = [line("parameter"), line("tanh", 0)]
    for _ in range(depth):
        count = len(lines)
        lines += [line("grad", count - 1, 0), line("sin", count), line("mul", count + 1, count + 1)]
    return Program(registry(), [*lines, line("sum", len(lines) - 1)])


def chain(length: int) -> Program:
    return Program(registry(), [line("parameter"), *(line("sin", i) for i in range(length)), line("sum", length)])


def calls(program: Program, shape: tuple[int, ...]) -> list[Call]:
    """Those that differentiate."""
    given, scalar = ((0, TensorType(shape, F64)),), ((len(program.statements) - 1, TensorType((), F64)),)
    return [
        Gradients.of_program(program),
        VJP.of_program(program, scalar),
        JVP.of_program(program, given),
        HVP.along(program, given),
        Hessian.of_program(program),
        Jacobian.of_program(program),
    ]


def accepted(program: Program, types: dict[int, TensorType], call: Call, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many nodes a call comes to; that they suffice, whatever is looked at ahead."""
    monkeypatch.setattr(sketches, "WORTH_A_LOOK", 1 << 60)
    total = len(write_call(program, types, call, LIMITS).graph.nodes)
    monkeypatch.setattr(sketches, "WORTH_A_LOOK", 0)
    assert len(write_call(program, types, call, Limits(nodes=total)).graph.nodes) == total
    return total


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("program", [nested(2), chain(30)], ids=["nested", "chain"])
def test_what_fits_is_accepted(program: Program, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    types = {0: TensorType((3,), F64)}
    total = accepted(program, types, calls(program, (3,))[which], monkeypatch)
    with pytest.raises(TooManyNodes):
        write_call(program, types, calls(program, (3,))[which], Limits(nodes=total - 1))


@pytest.mark.parametrize("depth", [1, 2])
def test_gradients_that_are_nodes_fit_where_they_fit(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is done to them: what comes to less in the end is counted as it is written."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), F64), "x")
    y = x.tanh()
    for _ in range(depth):
        y = y.grad(x).sin()
    graph = builder.graph([y])
    total = len(expand_grad(graph).nodes)
    monkeypatch.setattr(sketches, "WORTH_A_LOOK", 0)
    assert len(expand_grad(graph, Limits(nodes=total)).nodes) == total
    with pytest.raises(TooManyNodes):
        expand_grad(graph, Limits(nodes=total - 1))


@each(lambda case: has_rule(case) and not case.is_complex)
def test_of_any_op_what_fits_is_accepted(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives of a sum of squares of its results, by all of its operands, and of one of them; in turn, of samples.

    All of them of the first sample.
    """
    arrays = case.arrays()
    types = {i: TensorType.of(array) for i, array in enumerate(arrays)}
    lines = list(case.program().statements)
    results = range(len(arrays) + 1, len(lines)) if case.op.several else [len(arrays)]
    first, *others = [i for i, type in zip(results, case.result_types(), strict=True) if type.is_differentiable]
    lines += [line("square", first), line("sum", len(lines))]
    for other in others:
        count = len(lines)
        lines += [line("square", other), line("sum", count), line("add", count - 1, count + 1)]
    program = Program(registry(), lines, opset=LATEST)
    wrt = [i for i, type in types.items() if type.is_differentiable]
    twice = [i for i in wrt if i not in ONCE.get(case.op.name, ())]
    asked: list[Call] = [
        JVP.of_program(program, tuple((i, types[i]) for i in wrt)),
        HVP.along(program, tuple((i, types[i]) for i in twice), None, twice),
        Hessian.of_program(program, None, twice),
        Jacobian.of_program(program, wrt[:1], [first, len(lines) - 1]),
    ]
    for call in asked if case.number == 0 else asked[case.number % 4 :][:1]:
        accepted(program, types, call, monkeypatch)


@pytest.mark.parametrize(
    ("program", "call"), [(nested(12), Gradients), (nested(40), Gradients), (chain(4_000), Hessian)]
)
def test_what_is_too_much_is_refused_before_it_is_written(
    program: Program, call: type[Gradients], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what the client wrote is, and what each kind of node comes to."""
    written: list[object] = []
    append = Builder.append
    monkeypatch.setattr(Builder, "append", lambda self, node: written.append(node) or append(self, node))  # type: ignore[func-returns-value]
    with pytest.raises(TooManyNodes) as caught:
        write_call(program, {0: TensorType((), F64)}, call.of_program(program), Limits(nodes=20_000))
    assert str(caught.value) == "the graph, with the nodes of its gradients, has more than 20000 nodes"
    assert len(written) < len(program.statements) + 1_000
