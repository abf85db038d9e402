"""Rules of simplification, for ops to declare: each says when a node comes down to less, and to what.

They are tried by `engine.ir.passes`. Every one keeps the value, but for the sign of a zero (x + 0 becomes
x, also where x is −0.0) and, where a factor is put together from several, a sum is taken before a product or a
product is transposed, for the last digits. None drops a factor that could be infinite or NaN: x · 0 stays.

What may live here: rules that look at a node, its operands and what made these. What may not: walks over
graphs, or the definition of an op.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from engine.ir.graph import Node, Value
from engine.ir.kinds.scalars import typed_number, weak_number
from engine.ir.op import RewriteRule, rewrite
from engine.ir.tensor_type import Shape, broadcast, has_loops, reduced_shape

# Runs of one kind have been merged, so that rules leave two or three in a row. A client's chain of them, read by many,
# is not followed to its end: that would take quadratic time.
_LOOKS_THROUGH: Final = 4
#: spans of one tensor, and how many tensors within one another are looked into: a client may have any number of both
MOST_SPANS: Final = 64
_LOOKS_INTO: Final = 4


def fill_of(x: Value) -> float | None:
    """The number that x holds everywhere, where that is known; of complex numbers it is not said.

    Their products and sums with one have a second part, which has zeros with signs, and NaN beside infinities.
    """
    if x.type.is_complex:
        return None
    for _ in range(_LOOKS_THROUGH):
        if x.node.op.spreads:
            x = x.builder.value(x.node.operands[0])
    number = x.node.op.number_everywhere(x.node.attrs)
    # As the dtype holds it: 0.1 in float32 is not 0.1.
    return None if number is None else typed_number(x.dtype.type(number).item(), x.dtype)


def source(x: Value, op: str) -> Value | None:
    """The operand of x, where x is `op` of it."""
    return x.builder.value(x.node.operands[0]) if x.node.op.name == op else None


def reshaped(x: Value, shape: Shape) -> Value:
    """x in this shape, by one reshape or none."""
    x = source(x, "reshape") or x
    return x if x.shape == shape else x.reshape(shape=shape)


def broadcasted(x: Value, shape: Shape) -> Value:
    """x repeated to this shape, by one broadcast_to or none."""
    x = source(x, "broadcast_to") or x
    return x if x.shape == shape else x.broadcast_to(shape=shape)


def without(neutral: float, *, either: bool) -> RewriteRule:
    """x ∘ c = x for the neutral element c; on either side, or on the right alone."""

    @rewrite(needs=(), needs_number=True)
    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        a, b = operands
        if fill_of(b) == neutral and a.dtype == node.type.dtype:
            return broadcasted(a, node.type.shape)
        return (
            broadcasted(b, node.type.shape) if either and fill_of(a) == neutral and b.dtype == node.type.dtype else None
        )

    return rule


def without_scalar(neutral: float) -> RewriteRule:
    """x ∘ scalar = x for the neutral scalar."""
    return RewriteRule(lambda node, operands: operands[0] if node.attrs["scalar"] == neutral else None)


@rewrite(needs=(), needs_number=True)
def by_a_number(node: Node, operands: Sequence[Value]) -> Value | None:
    """x · c, c one number everywhere, as mul_scalar: c need not be spread out."""
    a, b = operands
    for x, c in ((a, fill_of(b)), (b, fill_of(a))):
        if c is not None and cmath.isfinite(c) and x.type == node.type:
            return -x if c == -1 else x.mul_scalar(scalar=weak_number(c))
    return None


@rewrite(needs=["mul_scalar"])
def scalars_together(node: Node, operands: Sequence[Value]) -> Value | None:
    """(x · a) · b, a a power of two, as x · (a b), or x where that is x · 1: exact, short of overflow."""
    inner = source(operands[0], "mul_scalar")
    if inner is None:
        return None
    a, b = operands[0].node.attrs["scalar"], node.attrs["scalar"]
    exact = abs(math.frexp(a)[0]) == 0.5 and 1 / 1024 <= abs(a) <= 1024
    if not exact or not holds(inner, a * b):
        return None
    return inner if a * b == 1 else inner.mul_scalar(scalar=a * b)


def holds(x: Value, number: float) -> bool:
    """Whether x's dtype has `number` without overflow or loss of digits at the small end: float16 ends at 65,504."""
    return x.type.is_float and float(np.finfo(x.dtype).tiny) <= abs(number) <= float(np.finfo(x.dtype).max)


# ---------------------------------------------------------------- signs: IEEE arithmetic rounds both alike


def _negated(x: Value) -> Value | None:
    """a, where x is −a: of floats, since an integer without a sign wraps."""
    return source(x, "neg") if x.type.is_float else None


def twice(op: str) -> RewriteRule:
    """f(f(x)) = x."""
    return rewrite(needs=[op])(lambda node, operands: source(operands[0], op))


@rewrite(needs=["mul_scalar"])
def negated_scalar(_: Node, operands: Sequence[Value]) -> Value | None:
    """−(x · c) = x · (−c)."""
    inner = source(operands[0], "mul_scalar")
    return inner.mul_scalar(scalar=-operands[0].node.attrs["scalar"]) if inner and inner.type.is_float else None


@rewrite(needs=["neg"])
def scalar_of_negated(node: Node, operands: Sequence[Value]) -> Value | None:
    """(−x) · c = x · (−c)."""
    inner = _negated(operands[0])
    return inner.mul_scalar(scalar=-node.attrs["scalar"]) if inner else None


@rewrite(needs=["neg"])
def sum_with_negated(_: Node, operands: Sequence[Value]) -> Value | None:
    """a + (−b) = a − b, (−a) + b = b − a."""
    a, b = operands
    minus_a, minus_b = _negated(a), _negated(b)
    return a - minus_b if minus_b else b - minus_a if minus_a else None


def sign_out(position: int) -> RewriteRule:
    """(−a) ∘ b = −(a ∘ b), and a ∘ (−b) too, for what is linear: a sign that is passed on may meet another."""

    @rewrite(needs=["neg"], alone=position)
    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        inner = _negated(operands[position])
        if inner is None:
            return None
        unsigned = [inner if i == position else x for i, x in enumerate(operands)]
        return -inner.builder.emit(node.op, unsigned, node.attrs)

    return rule


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


@rewrite(needs=["matmul", "neg"], alone=0)
def sum_of_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """Σᵢ (a b)ᵢⱼ = (Σᵢ aᵢ) b over the rows, and over the columns a (Σⱼ bⱼ); of −a b as well.

    The gradient of what was spread over the rows of a product is such a sum.
    """
    (x,) = operands
    negated = source(x, "neg")
    product = negated or x
    # float16 adds up in float32, and rounds to itself between a product and its sum; whole numbers may wrap
    if product.node.op.name != "matmul" or not has_loops(product.dtype) or not product.type.size:
        return None
    row, column, axes = product.ndim - 2, product.ndim - 1, node.attrs["axes"]
    if row not in axes and column not in axes:
        return None
    a, b = (x.builder.value(i) for i in product.node.operands)
    a = a.sum(axes=(a.ndim - 2,), keepdims=True) if row in axes else a
    b = b.sum(axes=(b.ndim - 1,), keepdims=True) if column in axes else b
    y = a.matmul(b)
    others = tuple(axis for axis in axes if axis < row)
    y = reshaped(y.sum(axes=others) if others else y, node.type.shape)
    return -y if negated else y


@rewrite(needs=["matmul"], alone=0)
def transposed_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """(a b)ᵀ = bᵀ aᵀ, which lies as it is to be read: a product reads its operands by rows or by columns.

    The gradient by a matrix that was transposed is one.
    """
    (x,) = operands
    if x.node.op.name != "matmul" or node.attrs["axes"] != _swapping(x):
        return None
    a, b = (x.builder.value(i) for i in x.node.operands)
    if min(a.ndim, b.ndim) < 2 or a.ndim == 2 < b.ndim:  # many matrices times one are one: they would be moved for it
        return None
    if _before_swap(a) is None and _before_swap(b) is None:
        return None  # there would be one transpose more than before
    return (_before_swap(b) or b.transpose()) @ (_before_swap(a) or a.transpose())


def _before_swap(x: Value) -> Value | None:
    """The operand of a transpose of matrices; None of anything else."""
    return source(x, "transpose") if x.node.attrs.get("axes") == _swapping(x) else None


def _swapping(x: Value) -> tuple[int, ...]:
    """The permutation that swaps the last two axes."""
    return (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)


# A rule of simplification for tensors that are zero but for spans along one axis: gradients of slices are.


class Span(NamedTuple):
    """Part of a tensor that stands from `start` to `stop`."""

    start: int
    stop: int
    value: Value


@rewrite(needs=["pad", "cat"])
def sum_of_spans(node: Node, operands: Sequence[Value]) -> Value | None:
    """A sum whose operands are zero where the other one is not, as what stands in each place: nothing is added to 0.

    Spans in the same place are added up. What is a sum of many becomes one `cat`, sum by sum, and so do the spans in
    (a + b) + c where b and c are such.
    """
    if any(x.type != node.type for x in operands):
        return None
    whole = _together(*operands)
    if whole is not None:
        return whole
    for other, x in (operands, operands[::-1]):
        if _axis(x) is None or other.node.op.name != "add":
            continue
        terms = [other.builder.value(i) for i in other.node.operands]
        for term, rest in (terms, terms[::-1]):
            whole = _together(term, x) if term.type == rest.type == node.type else None
            if whole is not None:
                return rest + whole
    return None


def _together(a: Value, b: Value) -> Value | None:
    """a + b, of two that are made of spans along the same axis; None where they overlap."""
    axis = _axis(a)
    if axis is None or axis != _axis(b):
        return None
    spans = [span for x in (a, b) for span in islice(_spans(x, axis), MOST_SPANS + 1)]
    merged = _merged(sorted(spans, key=lambda span: span[:2])) if len(spans) <= MOST_SPANS else None
    return None if merged is None else _joined(merged, a, axis)


def _axis(x: Value) -> int | None:
    """The axis along which x is made of spans; None where it is not."""
    if x.node.op.name == "cat":
        return int(x.node.attrs["axis"])
    if x.node.op.name != "pad" or x.node.attrs["fill"] != 0:
        return None
    padded = [axis for axis, widths in enumerate(_widths(x)) if any(widths)]
    return padded[0] if len(padded) == 1 else None


def _widths(x: Value) -> list[tuple[int, int]]:
    """Widths of a pad before and behind, along each axis."""
    flat = x.node.attrs["pad_width"]
    return list(zip(flat[::2], flat[1::2], strict=True))


def _spans(x: Value, axis: int, start: int = 0, depth: int = _LOOKS_INTO) -> Iterator[Span]:
    """Parts that x is made of along an axis, but for zeros."""
    stop = start + x.shape[axis]
    is_made = depth > 0 and _axis(x) == axis
    inner = source(x, "pad") if is_made else None
    if inner is not None:
        yield from _spans(inner, axis, start + _widths(x)[axis][0], depth - 1)
    elif is_made:
        for operand in map(x.builder.value, x.node.operands):
            yield from _spans(operand, axis, start, depth - 1)
            start += operand.shape[axis]
    elif stop > start and fill_of(x) != 0:
        yield Span(start, stop, x)


def _merged(spans: Sequence[Span]) -> list[Span] | None:
    """Spans in their order, those of one place added up; None where others overlap."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1][:2] == span[:2]:
            merged[-1] = span._replace(value=merged[-1].value + span.value)
        elif merged and merged[-1].stop > span.start:
            return None
        else:
            merged.append(span)
    return merged


def _joined(spans: Sequence[Span], like: Value, axis: int) -> Value:
    """The spans in their places, and zeros between them."""
    shape = like.shape
    parts: list[Value] = []
    place = 0
    for start, stop, value in (*spans, Span(shape[axis], shape[axis], like)):
        if start > place:
            parts.append(like.full_like(0.0, (*shape[:axis], start - place, *shape[axis + 1 :])))
        if stop > start:
            parts.append(value)
        place = stop
    return parts[0] if len(parts) == 1 else parts[0].cat(*parts[1:], axis=axis)
