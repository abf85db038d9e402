"""Loops in segments: a scan of scans. Their backward pass keeps the carries between segments alone.

Those within a segment are recomputed when the backward pass comes to it. n steps in segments of √n so need memory for
2√n carries, and in segments of segments for 3 ∛n, for one more pass over the steps each (A. Griewank, "Achieving
logarithmic growth of temporal and spatial complexity in reverse automatic differentiation"). A `while` stays whole:
no plan knows how many steps it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from engine.bodies.runs_functions import Parts, emit_scan, in_parts, scan_attributes
from engine.bodies.tidy import derived
from engine.graph.body import Body
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.program import Program
from engine.graph.tensor_type import TensorType
from engine.oplib.pack import bundled
from engine.oplib.slices import cut

#: steps from which a loop is worth segments
_MANY: Final = 16
#: segments that divide the steps are taken, where they are so much longer or shorter at most, or by so many steps
_NEAR: Final = 2
_TRIED: Final = 10_000


def nest(graph: Graph, levels: int, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """`graph` with its long scans in segments, and these in segments, as many `levels` as are asked for.

    They give the same, bit for bit.
    """
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
    """The results of a scan in segments, and what is left over as a scan of its own: where the steps end."""
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
                found = _in_segments(body, one, count, steps, levels, reverse=reverse)
            else:
                found = emit_scan(operands[0].builder, body, one, count, reverse=reverse)
            state, stacks[place] = found[:carries], found[carries:]
    joined = zip(*[stacks[place] for place in sorted(stacks)], strict=True)
    return [*state, *[first.cat(*others, axis=0) if others else first for first, *others in joined]]


def _in_segments(body: Body, parts: Parts, length: int, steps: int, levels: int, *, reverse: bool) -> list[Value]:
    count = length // steps
    through = [x.reshape(shape=(count, steps, *x.shape[1:])) for x in parts.sequences]
    segment = _segment(body, len(parts.consts), len(parts.carries), steps, levels, reverse=reverse)
    carries, joined = len(parts.carries), Parts(parts.consts, parts.carries, through)
    found = emit_scan(parts.carries[0].builder, segment, joined, count, reverse=reverse)
    return [*found[:carries], *[x.reshape(shape=(length, *x.shape[2:])) for x in found[carries:]]]


def _segment(body: Body, consts: int, carries: int, steps: int, levels: int, *, reverse: bool) -> Body:
    """A step through one segment of each sequence."""

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
    """Steps of one segment, so that all levels have about as many: a divisor, where one is near."""
    wanted: int = round(length ** (levels / (levels + 1)))
    least, most = max(2, wanted // _NEAR), wanted * _NEAR
    outwards = (k for away in range(_TRIED) for k in (wanted - away, wanted + away) if least <= k <= most)
    return next((k for k in outwards if length % k == 0), wanted)
