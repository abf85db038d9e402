"""Rewrites of loops before they are planned: hoisted invariants, merged and segmented loops, and lowering.

Loop-invariant code motion: nodes of a body that depend on consts alone are computed once, in front of the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from engine.autodiff.bodies import derived, tidy
from engine.autodiff.control_flow import Parts, RunsFunctions, emit_scan, in_parts, scan_attributes
from engine.ir.attributes import keyed
from engine.ir.graph import Builder, Graph, Node, Value
from engine.ir.program import Body, Program
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, Limits
from engine.ir.tensor_type import INTEGERS, TensorType
from engine.ops.common.batching import bundled
from engine.ops.elementwise.base import Elementwise
from engine.ops.index.slice import cut

#: bytes of a value in front of a loop that are worth nothing, where it is larger than what it is made of
_SMALL: Final = 1 << 12


def hoist(graph: Graph) -> Graph:
    """Make loop invariants consts of their loops. They have the same bits, and are computed once."""
    if not any(isinstance(node.op, RunsFunctions) and node.op.steps_body for node in graph.nodes):
        return graph
    return Builder(graph.registry, NO_LIMITS).rewrite(graph, _hoisted)


def _hoisted(node: Node, operands: Sequence[Value]) -> Value | None:
    """Move loop invariants in front of a loop; return None if it has none, or `node` is no loop."""
    if not isinstance(node.op, RunsFunctions) or not node.op.steps_body:
        return None
    body: Body = node.attrs["body"]
    consts = node.op.consts(len(operands), **node.attrs)
    moved = frontier(body, consts, is_run=node.op.name == "scan" and node.attrs["length"] > 0)
    if not moved:
        return None
    graph = tidy(body).graph
    front = body.made(
        ("front", consts, moved), lambda: derived(body, graph.rewritten(graph.nodes, moved), body.inputs[:consts])
    )
    hoisted = front.inline_into(operands[0].builder, operands[:consts])
    attrs = dict(node.attrs)
    for name, value in node.attrs.items():
        if isinstance(value, Body):
            key = "with more", body.digest, consts, moved
            attrs[name] = value.made(key, partial(_widened, value, body, consts, moved))
    return operands[0].builder.emit(node.op, [*operands[:consts], *hoisted, *operands[consts:]], attrs)


def frontier(body: Body, consts: int, *, is_run: bool) -> tuple[int, ...]:
    """Find nodes of the (tidy) body that depend on the consts alone, and are read by others or are results.

    Unless a step surely `is_run`, nodes that may raise an error are left out.
    """
    return body.made(("frontier", consts, is_run), lambda: _frontier(tidy(body).graph, consts, is_run=is_run))


def _frontier(graph: Graph, consts: int, *, is_run: bool) -> tuple[int, ...]:
    fixed, moved = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            is_fixed = node.attrs["feed"] < consts
        else:
            is_fixed = bool(node.operands) and fixed.issuperset(node.operands) and _is_worth(graph, node)
            is_fixed = is_fixed and (is_run or not _may_refuse(graph, node))
        if is_fixed:
            fixed.add(i)
    read = {*graph.outputs, *[o for i, node in enumerate(graph.nodes) if i not in fixed for o in node.operands]}
    moved = {i for i in fixed & read if not graph.nodes[i].is_leaf and not graph.nodes[i].op.several}
    return tuple(sorted(moved))


def _is_worth(graph: Graph, node: Node) -> bool:
    """Whether it is no larger than what it is made of, or small; several results are kept together, inside."""
    if node.op.several or node.op.name == "get_output":
        return False
    made_of = sum(graph.nodes[i].type.nbytes for i in node.operands)
    return node.type.nbytes <= max(made_of, _SMALL)


def _may_refuse(graph: Graph, node: Node) -> bool:
    """Whether it may find an index that is outside its axis."""
    if node.op.is_view or isinstance(node.op, Elementwise):
        return False
    return any(graph.nodes[i].type.dtype.name in INTEGERS for i in node.operands)


def _widened(function: Body, body: Body, consts: int, moved: tuple[int, ...]) -> Body:
    """Add nodes of `body` to the consts of a function of its loop, which may be the body itself."""
    graph = tidy(function).graph
    more = dict(zip(moved, range(consts, consts + len(moved)), strict=True)) if function == body else {}
    types = [tidy(body).graph.nodes[i].type for i in moved]
    inputs = [*function.inputs[:consts], *types, *function.inputs[consts:]]
    builder = function.budget.builder(graph.registry)
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            feed = node.attrs["feed"]
            values.append(builder.leaf(node.type, feed if feed < consts else feed + len(moved)))
        elif i in more:
            values.append(builder.leaf(node.type, more[i]))
        else:
            values.append(builder.copy(node, [values[o] for o in node.operands]))
    return derived(function, builder.graph([values[o] for o in graph.outputs]), inputs)


# Loop merging: loops through the same steps become one. Rules write a loop again to have more of each step.


class _Joint(NamedTuple):
    """A body with the results of several, and for each of these the positions of its results among the joint ones."""

    body: Body
    where: Sequence[Sequence[int]]


def merge(graph: Graph) -> Graph:
    """Merge loops over the same operands whose carries are the same: one loop has the stacks of all."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, RunsFunctions) and node.op.steps_body:
            but_body = keyed({name: value for name, value in node.attrs.items() if name != "body"})
            groups[node.op.family, node.operands, but_body].append(i)
    joints: list[tuple[Sequence[int], _Joint]] = []
    for group in groups.values():
        if len(group) > 1:
            bodies: list[Body] = [graph.nodes[i].attrs["body"] for i in group]
            key = "joint", *[body.digest for body in bodies]
            joint = bodies[0].made(key, partial(_joined, bodies, graph.nodes[group[0]].attrs["carries"]))
            if joint is not None:
                joints.append((group, joint))
    return _merged(graph, joints) if joints else graph


def _joined(bodies: Sequence[Body], carries: int) -> _Joint | None:
    """Join the bodies of a group; return None if their carries differ."""
    first = bodies[0]
    builder = first.budget.builder(first.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(first.inputs)]
    results = [tidy(body).inline_into(builder, leaves) for body in bodies]
    graph = derived(first, builder.graph([x for given in results for x in given]), first.inputs).graph
    outputs, start = [], 0
    for given in results:
        outputs.append(graph.outputs[start : start + len(given)])
        start += len(given)
    moving = outputs[0][:carries]
    if any(given[:carries] != moving for given in outputs):
        return None
    stacks = [*dict.fromkeys(i for given in outputs for i in given[carries:])]
    body = derived(first, graph.rewritten(graph.nodes, [*moving, *stacks]), first.inputs)
    where = [[*range(carries), *[carries + stacks.index(i) for i in given[carries:]]] for given in outputs]
    return _Joint(body, where)


def _merged(graph: Graph, joints: Sequence[tuple[Sequence[int], _Joint]]) -> Graph:
    builder = Builder(graph.registry, NO_LIMITS)
    instead = {i: (group[0], joint, n) for group, joint in joints for n, i in enumerate(group)}
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        operands = [values[o] for o in node.operands]
        builder.origin = node.origin
        if i in instead:
            first, joint, _ = instead[i]
            assert isinstance(node.op, RunsFunctions)
            attrs = {**node.attrs, "body": joint.body}
            values.append(node.op.emit_loop(operands, attrs) if first == i else values[first])
        elif node.op.name == "get_output" and node.operands[0] in instead:
            values.append(operands[0].output(_place(graph, node, *instead[node.operands[0]][1:])))
        else:
            values.append(builder.copy(node, operands))
    return builder.graph([values[o] for o in graph.outputs])


def _place(graph: Graph, node: Node, joint: _Joint, n: int) -> int:
    """Return the index of a result of the merged loop. Results beside carries and stacks keep theirs."""
    loop = graph.nodes[node.operands[0]]
    assert isinstance(loop.op, RunsFunctions)
    index: int = node.attrs["index"]
    carries: int = loop.attrs["carries"]
    beside = loop.op.beside
    if carries <= index < carries + beside:
        return index
    past = beside if index >= carries else 0
    return joint.where[n][index - past] + past


# Loops in segments: a scan of scans. Their backward pass keeps the carries between segments alone.
#
# Those within a segment are recomputed when the backward pass comes to it. n steps in segments of √n so need memory for
# 2√n carries, and in segments of segments for 3 ∛n, for one more pass over the steps each (A. Griewank, "Achieving
# logarithmic growth of temporal and spatial complexity in reverse automatic differentiation"). A `while` stays whole:
# no plan knows how many steps it takes.

#: steps from which a loop is worth segments
_MANY: Final = 16
#: segments that divide the steps are taken, where they are so much longer or shorter at most, or by so many steps
_NEAR: Final = 2
_TRIED: Final = 10_000


def nest(graph: Graph, levels: int, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Cut long scans into segments, and these into segments, as many `levels` as are asked for, with the same bits."""
    if not levels or not any(_is_long(node) for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, limits, deadline)

    def in_segments(node: Node, operands: Sequence[Value]) -> Value | None:
        return bundled(builder, _nested(operands, levels, **node.attrs)) if _is_long(node) else None

    return builder.rewrite(graph, in_segments)


def has_scans(program: Program) -> bool:
    """Whether there may be anything to nest in a program."""
    written = chain(program.statements, *[function.statements for function in program.functions])
    return any(statement.op.name == "scan" for statement in written)


def _is_long(node: Node) -> bool:
    return node.op.name == "scan" and node.attrs["length"] >= _MANY and bool(node.attrs["carries"])


def _nested(
    operands: Sequence[Value], levels: int, *, body: Body, carries: int, sequences: int, length: int, reverse: bool
) -> list[Value]:
    """Emit a scan in segments, and the steps that are left over, at the end of the loop, as a scan of its own."""
    parts = in_parts(operands, carries, sequences)
    steps = _steps(length, levels)
    whole = length // steps * steps
    through = [x if whole == length else cut(x, 0, 0, whole) for x in parts.sequences]
    rest = [cut(x, 0, whole, length) for x in parts.sequences] if whole < length else []
    both = (Parts((), (), through), whole), (Parts((), (), rest), length - whole)
    state, stacks = list(parts.carries), dict[int, list[Value]]()
    for place in (1, 0) if reverse else (0, 1):
        given, count = both[place]
        if count:
            one = Parts(parts.consts, state, given.sequences)
            if place == 0:
                results = _in_segments(body, one, count, steps, levels, reverse=reverse)
            else:
                results = emit_scan(operands[0].builder, body, one, count, reverse=reverse)
            state, stacks[place] = results[:carries], results[carries:]
    joined = zip(*[stacks[place] for place in sorted(stacks)], strict=True)
    return [*state, *[first.cat(*others, axis=0) if others else first for first, *others in joined]]


def _in_segments(body: Body, parts: Parts, length: int, steps: int, levels: int, *, reverse: bool) -> list[Value]:
    count = length // steps
    through = [x.reshape(shape=(count, steps, *x.shape[1:])) for x in parts.sequences]
    segment = _segment(body, len(parts.consts), len(parts.carries), steps, levels, reverse=reverse)
    carries, joined = len(parts.carries), Parts(parts.consts, parts.carries, through)
    results = emit_scan(parts.carries[0].builder, segment, joined, count, reverse=reverse)
    return [*results[:carries], *[x.reshape(shape=(length, *x.shape[2:])) for x in results[carries:]]]


def _segment(body: Body, consts: int, carries: int, steps: int, levels: int, *, reverse: bool) -> Body:
    """Write the body whose step goes through one segment of each sequence."""

    def make() -> Body:
        slices = [type.with_shape((steps, *type.shape)) for type in body.inputs[consts + carries :]]
        types: list[TensorType] = [*body.inputs[: consts + carries], *slices]
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        parts = in_parts(leaves, carries, len(slices))
        if levels > 1 and steps >= _MANY:
            results = _nested(leaves, levels - 1, **scan_attributes(body, parts, steps, reverse=reverse))
        else:
            results = emit_scan(builder, body, parts, steps, reverse=reverse)
        return derived(body, builder.graph(results), types)

    return body.made(("segment", consts, carries, steps, levels, reverse), make)


def _steps(length: int, levels: int) -> int:
    """Choose the steps of one segment, so that all levels have about as many: a divisor, if one is near."""
    wanted: int = round(length ** (levels / (levels + 1)))
    least, most = max(2, wanted // _NEAR), wanted * _NEAR
    outwards = (k for away in range(_TRIED) for k in (wanted - away, wanted + away) if least <= k <= most)
    return next((k for k in outwards if length % k == 0), wanted)


# Lowering of ops that run functions to those that an executor runs, once nothing is differentiated any more.


def lower(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Write calls out, and maps and fixed points as loops; also those in what that writes. Raises OverBudget."""

    def lowered(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.op.lowered(*operands, **node.attrs) if isinstance(node.op, RunsFunctions) else None

    while any(isinstance(node.op, RunsFunctions) for node in graph.nodes):
        written = Builder(graph.registry, limits, deadline).rewrite(graph, lowered)
        if written is graph:
            break
        graph = written
    return graph
