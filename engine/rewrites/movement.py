"""Rules of simplification for what moves or repeats elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from engine.graph.ir import Node, Value
from engine.graph.kinds.typed_number import weak_number
from engine.graph.rewrite_rule import rewrite
from engine.graph.tensor_type import broadcast, reduced_shape
from engine.rewrites.arithmetic import holds
from engine.rewrites.matching import broadcasted, reshaped, source


@rewrite()
def unchanged(_: Node, operands: Sequence[Value]) -> Value | None:
    """The operand itself, where the op changes nothing: identity, reshape or cast to what it is, a pad of no width."""
    return operands[0]


@rewrite()
def reshape_of_reshape(node: Node, operands: Sequence[Value]) -> Value | None:
    """One reshape of two, or none where it changes nothing."""
    (x,) = operands
    return reshaped(x, node.type.shape) if source(x, "reshape") else x


@rewrite()
def broadcast_of_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    """One broadcast_to of two, or none where it changes nothing."""
    (x,) = operands
    return broadcasted(x, node.type.shape) if source(x, "broadcast_to") else x


@rewrite(needs=["transpose"])
def transpose_of_transpose(node: Node, operands: Sequence[Value]) -> Value | None:
    """One permutation, or none."""
    inner = source(operands[0], "transpose")
    if inner is None:
        return None
    axes = tuple(operands[0].node.attrs["axes"][a] for a in node.attrs["axes"])
    return _moved_in_place(inner, axes) or inner.transpose(axes=axes)


@rewrite()
def transpose_in_place(node: Node, operands: Sequence[Value]) -> Value | None:
    """A permutation that moves only axes of extent 1, or none, is a reshape or nothing."""
    return _moved_in_place(operands[0], node.attrs["axes"])


def _moved_in_place(x: Value, axes: Sequence[int]) -> Value | None:
    moved = [a for a in axes if x.shape[a] != 1]
    return reshaped(x, tuple(x.shape[a] for a in axes)) if moved == sorted(moved) else None


@rewrite(needs=["broadcast_to"])
def broadcast_in_place(node: Node, operands: Sequence[Value]) -> Value | None:
    """f(broadcast_to(a), b) = f(a, b) where b has the result's shape: elementwise ops broadcast by themselves."""
    kept = list(operands)
    for i, x in enumerate(operands):
        inner = source(x, "broadcast_to")
        if inner is None:
            continue
        shapes = [y.shape for y in (*kept[:i], inner, *kept[i + 1 :])]
        if broadcast(*shapes) == node.type.shape:
            kept[i] = inner
    if kept == list(operands):
        return None
    return kept[0].builder.copy(node, kept)


@rewrite(needs=["transpose"], of_outputs=False)
def transposed_last(node: Node, operands: Sequence[Value]) -> Value | None:
    """f(transpose(a), transpose(b), c) = transpose(f(a, b, c)), where that turns rows and c is one number.

    f so goes through memory as its operands lie, and what is turned afterwards may cancel, or come to a product, which
    takes it either way.
    """
    turned = [x for x in operands if x.type.size != 1]
    if not turned or any(x.node.op.name != "transpose" or x.shape != node.type.shape for x in turned):
        return None
    axes = turned[0].node.attrs["axes"]
    if axes[-1] == len(axes) - 1 or any(x.node.attrs["axes"] != axes for x in turned):
        return None
    inner = [x if x.type.size == 1 else x.builder.value(x.node.operands[0]) for x in operands]
    return turned[0].builder.emit(node.op, inner, node.attrs).transpose(axes=axes)


#: of whatever computes each element by itself
MOVING: Final = (broadcast_in_place, transposed_last)


@rewrite(needs=["transpose"])
def sum_of_transpose(node: Node, operands: Sequence[Value]) -> Value | None:
    """A sum over the same numbers as they lie, where the axes that are left keep their order."""
    inner, axes = source(operands[0], "transpose"), node.attrs["axes"]
    if inner is None:
        return None
    order = operands[0].node.attrs["axes"]
    left = [a for i, a in enumerate(order) if i not in axes]
    if left != sorted(left):
        return None
    total = inner.sum(axes=tuple(sorted(order[i] for i in axes)), keepdims=False)
    return reshaped(total, node.type.shape)


@rewrite(needs=["sum"], alone=0)
def kept_sum(node: Node, operands: Sequence[Value]) -> Value | None:
    """A sum whose axes are put back at extent 1, as a sum that keeps them; or the other way round."""
    inner, attrs = source(operands[0], "sum"), operands[0].node.attrs
    if inner is None:
        return None
    keeps = not attrs["keepdims"]
    fits = reduced_shape(inner.shape, attrs["axes"], keeps) == node.type.shape
    return inner.sum(axes=attrs["axes"], keepdims=keeps) if fits and attrs["axes"] else None


@rewrite(needs=["broadcast_to"])
def sum_of_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    """Summing over axes that x was repeated along is multiplying by how often."""
    (repeated,), axes = operands, node.attrs["axes"]
    inner = source(repeated, "broadcast_to")
    if inner is None or not repeated.type.is_float:
        return None
    lead = repeated.ndim - inner.ndim
    if not all(a < lead or inner.shape[a - lead] != repeated.shape[a] for a in axes):
        return None
    times = math.prod(repeated.shape[a] for a in axes)
    if not holds(inner, times):  # nor where nothing is summed: that is 0, and ∞ · 0 is not
        return None
    scaled = inner if times == 1 else inner.mul_scalar(scalar=weak_number(times))
    if not node.attrs["keepdims"]:
        scaled = reshaped(scaled, tuple(extent for i, extent in enumerate(inner.shape) if i + lead not in axes))
    return broadcasted(scaled, node.type.shape)
