"""Algebraic simplification: what differentiation writes down mechanically, said shorter.

Every rule keeps the value, but for the sign of a zero (x + 0 becomes x, also where x is −0.0). None drops a factor
that could be infinite or NaN: x · 0 stays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

import numpy as np

from engine.ir import Builder, Graph, Node, Value
from engine.limits import Limits
from engine.reduction import reduced_shape

#: `rule(node, operands)`: what a node on these operands comes down to, or None
Rule = Callable[[Node, Sequence[Value]], Value | None]

# The graph has been admitted; what it comes down to is no larger.
_ADMITTED = Limits(nodes=sys.maxsize, rank=sys.maxsize, bytes=sys.maxsize, flops=sys.maxsize)

# Runs of one kind have been merged, so that rules leave two or three in a row. A client's chain of them, read by many,
# is not followed to its end: that would take quadratic time.
_LOOKS_THROUGH = 4


def simplify(graph: Graph) -> Graph:
    """`graph` with the rules applied once, in order, each on operands that are simplified already."""
    builder = Builder(_ADMITTED)
    values: list[Value] = []
    for node in graph.nodes:
        operands = [values[i] for i in node.operands]
        builder.origin = node.origin
        shorter = _rewritten(node, operands)
        values.append(builder.copy(node, operands) if shorter is None else shorter)
    return builder.graph([values[i] for i in graph.outputs])


def _rewritten(node: Node, operands: Sequence[Value]) -> Value | None:
    for rule in RULES.get(node.op.name, ()):
        found = rule(node, operands)
        if found is not None and found.type == node.type:
            return found
    return None


def fill_of(x: Value) -> float | None:
    """The number that x holds everywhere, where that is known."""
    for _ in range(_LOOKS_THROUGH):
        if x.node.op.name in ("broadcast_to", "reshape"):
            x = x.builder.value(x.node.operands[0])
    # As the dtype holds it: 0.1 in float32 is not 0.1.
    return float(x.dtype.type(x.node.attrs["fill"])) if x.node.op.name == "full" else None


def _source(x: Value, op: str) -> Value | None:
    """The operand of x, where x is `op` of it."""
    return x.builder.value(x.node.operands[0]) if x.node.op.name == op else None


def _same(_: Node, operands: Sequence[Value]) -> Value | None:
    """The operand itself, where the op changes nothing: identity, reshape or cast to what it is."""
    return operands[0]


def _without(neutral: float, *, either: bool) -> Rule:
    """x ∘ c = x for the neutral element c; on either side, or on the right alone."""

    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        a, b = operands
        if fill_of(b) == neutral and a.type == node.type:
            return a
        return b if either and fill_of(a) == neutral and b.type == node.type else None

    return rule


def _scalar(neutral: float) -> Rule:
    """x ∘ scalar = x for the neutral scalar."""
    return lambda node, operands: operands[0] if node.attrs["scalar"] == neutral else None


def _by_a_number(node: Node, operands: Sequence[Value]) -> Value | None:
    """x · c, c one number everywhere, as mul_scalar: c need not be spread out."""
    a, b = operands
    for x, c in ((a, fill_of(b)), (b, fill_of(a))):
        if c is not None and math.isfinite(c) and x.type == node.type:
            return -x if c == -1 else x.mul_scalar(scalar=c)
    return None


def _scalars_together(node: Node, operands: Sequence[Value]) -> Value | None:
    """(x · a) · b, a a power of two, as x · (a b): exact, short of overflow."""
    inner = _source(operands[0], "mul_scalar")
    if inner is None:
        return None
    a, b = operands[0].node.attrs["scalar"], node.attrs["scalar"]
    exact = abs(math.frexp(a)[0]) == 0.5 and 1 / 1024 <= abs(a) <= 1024
    return inner.mul_scalar(scalar=a * b) if exact and _holds(inner, a * b) else None


def _holds(x: Value, number: float) -> bool:
    """Whether x's dtype has `number` without overflow or loss of digits at the small end: float16 ends at 65,504."""
    return x.type.is_float and float(np.finfo(x.dtype).tiny) <= abs(number) <= float(np.finfo(x.dtype).max)


def _twice(op: str) -> Rule:
    """f(f(x)) = x."""
    return lambda node, operands: _source(operands[0], op)


def _reshape_of_reshape(node: Node, operands: Sequence[Value]) -> Value | None:
    inner = _source(operands[0], "reshape")
    return None if inner is None else _reshaped(inner, node)


def _reshaped(x: Value, node: Node) -> Value:
    return x if x.shape == node.type.shape else x.reshape(shape=node.type.shape)


def _transpose_of_transpose(node: Node, operands: Sequence[Value]) -> Value | None:
    inner = _source(operands[0], "transpose")
    if inner is None:
        return None
    axes = tuple(operands[0].node.attrs["axes"][a] for a in node.attrs["axes"])
    return inner if axes == tuple(range(len(axes))) else inner.transpose(axes=axes)


def _transpose_in_place(node: Node, operands: Sequence[Value]) -> Value | None:
    """A permutation that moves only axes of extent 1, or none, is a reshape or nothing."""
    axes, shape = node.attrs["axes"], operands[0].shape
    moved = [a for a in axes if shape[a] != 1]
    return _reshaped(operands[0], node) if moved == sorted(moved) else None


def _broadcast_of_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    inner = _source(operands[0], "broadcast_to")
    return None if inner is None else inner.broadcast_to(shape=node.type.shape)


def _sum_of_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    """Summing over axes that x was repeated along is multiplying by how often."""
    (spread,), axes = operands, node.attrs["axes"]
    inner = _source(spread, "broadcast_to")
    if inner is None or not spread.type.is_float:
        return None
    lead = spread.ndim - inner.ndim
    if not all(a < lead or inner.shape[a - lead] != spread.shape[a] for a in axes):
        return None
    times = math.prod(spread.shape[a] for a in axes)
    if not _holds(inner, times):  # nor where nothing is summed: that is 0, and ∞ · 0 is not
        return None
    left = inner.mul_scalar(scalar=float(times)).reshape(
        shape=tuple(extent for i, extent in enumerate(inner.shape) if i + lead not in axes)
    )
    return _reshaped(left.broadcast_to(shape=reduced_shape(spread.shape, axes, keepdims=False)), node)


RULES: dict[str, tuple[Rule, ...]] = {
    "identity": (_same,),
    "copy_to_device": (_same,),
    "stop_gradient": (_same,),
    "cast": (_same,),
    "reshape": (_same, _reshape_of_reshape),
    "broadcast_to": (_same, _broadcast_of_broadcast),
    "transpose": (_transpose_in_place, _transpose_of_transpose),
    "neg": (_twice("neg"),),
    "add": (_without(0.0, either=True),),
    "sub": (_without(0.0, either=False),),
    "mul": (_without(1.0, either=True), _by_a_number),
    "div": (_without(1.0, either=False),),
    "add_scalar": (_scalar(0.0),),
    "sub_scalar": (_scalar(0.0),),
    "mul_scalar": (_scalar(1.0), _scalars_together),
    "div_scalar": (_scalar(1.0),),
    "sum": (_sum_of_broadcast,),
}
