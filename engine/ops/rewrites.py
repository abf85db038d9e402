"""Rewrite rules that ops declare: each recognises a node that can be simplified and returns its replacement.

`engine.ir.passes` applies them. Every rule preserves the value, with two exceptions. The sign of a zero may change:
x + 0 becomes x, even if x is −0.0. The last digits may change if a rule multiplies constants together, sums before a
product, or transposes a product. No rule drops a factor that could be infinite or NaN: x · 0 stays.

This module contains rules that look at a node, its operands and their producers. It contains no graph traversals and
no op definitions.
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
from engine.ir.tensor_type import Shape, broadcast, has_kernels, reduced_shape

# Other rules merge chains of reshapes and of broadcasts, so at most a few remain in a row. A client's longer chain with
# many readers is not followed to its end: that would take quadratic time.
_CHAIN_LIMIT: Final = 4
#: limits on the spans of a tensor and on the nesting depth of tensors made of spans: a client chooses both
MOST_SPANS: Final = 64
_NESTING_LIMIT: Final = 4


def uniform_value(x: Value) -> float | None:
    """Return the number that every element of x is known to equal; else None, and always None if x is complex.

    Complex products and sums also have an imaginary part, where signed zeros and NaN from infinities would differ.
    """
    if x.type.is_complex:
        return None
    for _ in range(_CHAIN_LIMIT):
        if x.node.op.propagates_constant:
            x = x.builder.value(x.node.operands[0])
    number = x.node.op.constant_value(x.node.attrs)
    # Round to the dtype: 0.1 in float32 is not 0.1.
    return None if number is None else typed_number(x.dtype.type(number).item(), x.dtype)


def source(x: Value, op: str) -> Value | None:
    """Return the first operand of the node that computes x if that node is an `op`; else None."""
    return x.builder.value(x.node.operands[0]) if x.node.op.name == op else None


def reshaped(x: Value, shape: Shape) -> Value:
    """Reshape x to this shape with at most one reshape node."""
    x = source(x, "reshape") or x
    return x if x.shape == shape else x.reshape(shape=shape)


def broadcasted(x: Value, shape: Shape) -> Value:
    """Broadcast x to this shape with at most one broadcast_to node."""
    x = source(x, "broadcast_to") or x
    return x if x.shape == shape else x.broadcast_to(shape=shape)


def neutral_element(neutral: float, *, either: bool) -> RewriteRule:
    """Make the rule x ∘ c = x for the neutral element c, on either side or only on the right."""

    @rewrite(needs=(), needs_number=True)
    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        a, b = operands
        if uniform_value(b) == neutral and a.dtype == node.type.dtype:
            return broadcasted(a, node.type.shape)
        return (
            broadcasted(b, node.type.shape)
            if either and uniform_value(a) == neutral and b.dtype == node.type.dtype
            else None
        )

    return rule


def neutral_scalar(neutral: float) -> RewriteRule:
    """Make the rule x ∘ scalar = x for the neutral scalar."""
    return RewriteRule(lambda node, operands: operands[0] if node.attrs["scalar"] == neutral else None)


@rewrite(needs=(), needs_number=True)
def mul_by_constant(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace x · c, c a constant tensor, by mul_scalar, so that c is never materialised."""
    a, b = operands
    for x, c in ((a, uniform_value(b)), (b, uniform_value(a))):
        if c is not None and cmath.isfinite(c) and x.type == node.type:
            return -x if c == -1 else x.mul_scalar(scalar=weak_number(c))
    return None


@rewrite(needs=["mul_scalar"])
def merged_scalars(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace (x · a) · b by x · (a b), or by x if a b = 1. a is a power of two, so this is exact short of overflow."""
    inner = source(operands[0], "mul_scalar")
    if inner is None:
        return None
    a, b = operands[0].node.attrs["scalar"], node.attrs["scalar"]
    exact = abs(math.frexp(a)[0]) == 0.5 and 1 / 1024 <= abs(a) <= 1024
    if not exact or not is_in_range(inner, a * b):
        return None
    return inner if a * b == 1 else inner.mul_scalar(scalar=a * b)


def is_in_range(x: Value, number: float) -> bool:
    """Whether `number` is in the normal range of x's float dtype: it neither overflows nor is subnormal."""
    return x.type.is_float and float(np.finfo(x.dtype).tiny) <= abs(number) <= float(np.finfo(x.dtype).max)


# ---------------------------------------------------------------- signs: IEEE rounding is symmetric around zero


def _negation_operand(x: Value) -> Value | None:
    """Return a if x is −a and a float; else None. Negating an unsigned integer wraps around."""
    return source(x, "neg") if x.type.is_float else None


def involution(op: str) -> RewriteRule:
    """Make the rule f(f(x)) = x for the op f."""
    return rewrite(needs=[op])(lambda node, operands: source(operands[0], op))


@rewrite(needs=["mul_scalar"])
def negated_scalar(_: Node, operands: Sequence[Value]) -> Value | None:
    """Replace −(x · c) by x · (−c)."""
    inner = source(operands[0], "mul_scalar")
    return inner.mul_scalar(scalar=-operands[0].node.attrs["scalar"]) if inner and inner.type.is_float else None


@rewrite(needs=["neg"])
def scalar_of_negated(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace (−x) · c by x · (−c)."""
    inner = _negation_operand(operands[0])
    return inner.mul_scalar(scalar=-node.attrs["scalar"]) if inner else None


@rewrite(needs=["neg"])
def sum_with_negated(_: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a + (−b) by a − b, and (−a) + b by b − a."""
    a, b = operands
    minus_a, minus_b = _negation_operand(a), _negation_operand(b)
    return a - minus_b if minus_b else b - minus_a if minus_a else None


def factored_sign(position: int) -> RewriteRule:
    """Make the rule (−a) ∘ b = −(a ∘ b) for the operand at `position` of a linear op.

    A negation moved outwards may cancel against another one.
    """

    @rewrite(needs=["neg"], unshared_operand=position)
    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        inner = _negation_operand(operands[position])
        if inner is None:
            return None
        unsigned = [inner if i == position else x for i, x in enumerate(operands)]
        return -inner.builder.emit(node.op, unsigned, node.attrs)

    return rule


@rewrite()
def no_op(_: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a node that changes nothing by its operand: an identity, a cast to the same dtype, a pad of width 0."""
    return operands[0]


@rewrite()
def reshape_of_reshape(node: Node, operands: Sequence[Value]) -> Value | None:
    """Merge two reshapes into one, and drop a reshape that keeps the shape."""
    (x,) = operands
    return reshaped(x, node.type.shape) if source(x, "reshape") else x


@rewrite()
def broadcast_of_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    """Merge two broadcast_to nodes into one, and drop one that keeps the shape."""
    (x,) = operands
    return broadcasted(x, node.type.shape) if source(x, "broadcast_to") else x


@rewrite(needs=["transpose"])
def transpose_of_transpose(node: Node, operands: Sequence[Value]) -> Value | None:
    """Merge two transposes into one; replace them by a reshape, or nothing, if no elements move."""
    inner = source(operands[0], "transpose")
    if inner is None:
        return None
    axes = tuple(operands[0].node.attrs["axes"][a] for a in node.attrs["axes"])
    return _as_reshape(inner, axes) or inner.transpose(axes=axes)


@rewrite()
def trivial_transpose(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a transpose that moves only axes of extent 1 by a reshape, or by nothing."""
    return _as_reshape(operands[0], node.attrs["axes"])


def _as_reshape(x: Value, axes: Sequence[int]) -> Value | None:
    # The elements keep their order in memory if the axes of extent other than 1 keep theirs.
    nontrivial = [a for a in axes if x.shape[a] != 1]
    return reshaped(x, tuple(x.shape[a] for a in axes)) if nontrivial == sorted(nontrivial) else None


@rewrite(needs=["broadcast_to"])
def redundant_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace f(broadcast_to(a), b) by f(a, b) if b has the result's shape: elementwise ops broadcast on their own."""
    unwrapped = list(operands)
    for i, x in enumerate(operands):
        inner = source(x, "broadcast_to")
        if inner is None:
            continue
        shapes = [y.shape for y in (*unwrapped[:i], inner, *unwrapped[i + 1 :])]
        if broadcast(*shapes) == node.type.shape:
            unwrapped[i] = inner
    if unwrapped == list(operands):
        return None
    return unwrapped[0].builder.copy(node, unwrapped)


@rewrite(needs=["transpose"], rewrites_outputs=False)
def transpose_outwards(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace f(transpose(a), transpose(b), c) by transpose(f(a, b, c)), c of one element, if the last axis moves.

    f then reads its operands in memory order. The transpose may cancel against another one, or reach a matmul, which
    reads its operands in either order.
    """
    transposed = [x for x in operands if x.type.size != 1]
    if not transposed or any(x.node.op.name != "transpose" or x.shape != node.type.shape for x in transposed):
        return None
    axes = transposed[0].node.attrs["axes"]
    if axes[-1] == len(axes) - 1 or any(x.node.attrs["axes"] != axes for x in transposed):
        return None
    inner = [x if x.type.size == 1 else x.builder.value(x.node.operands[0]) for x in operands]
    return transposed[0].builder.emit(node.op, inner, node.attrs).transpose(axes=axes)


#: rules of every elementwise op
ELEMENTWISE_RULES: Final = (redundant_broadcast, transpose_outwards)


@rewrite(needs=["transpose"])
def sum_of_transpose(node: Node, operands: Sequence[Value]) -> Value | None:
    """Sum over x instead of its transpose, if the remaining axes keep their order."""
    inner, axes = source(operands[0], "transpose"), node.attrs["axes"]
    if inner is None:
        return None
    order = operands[0].node.attrs["axes"]
    remaining = [a for i, a in enumerate(order) if i not in axes]
    if remaining != sorted(remaining):
        return None
    total = inner.sum(axes=tuple(sorted(order[i] for i in axes)), keepdims=False)
    return reshaped(total, node.type.shape)


@rewrite(needs=["sum"], unshared_operand=0)
def reshape_of_sum(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a reshape of a sum that restores the reduced axes, or drops them, by a sum with the other `keepdims`."""
    inner, attrs = source(operands[0], "sum"), operands[0].node.attrs
    if inner is None:
        return None
    keepdims = not attrs["keepdims"]
    same_shape = reduced_shape(inner.shape, attrs["axes"], keepdims) == node.type.shape
    return inner.sum(axes=attrs["axes"], keepdims=keepdims) if same_shape and attrs["axes"] else None


@rewrite(needs=["broadcast_to"])
def sum_of_broadcast(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a sum over axes that x was broadcast along by x times their extent."""
    (repeated,), axes = operands, node.attrs["axes"]
    inner = source(repeated, "broadcast_to")
    if inner is None or not repeated.type.is_float:
        return None
    lead = repeated.ndim - inner.ndim
    if not all(a < lead or inner.shape[a - lead] != repeated.shape[a] for a in axes):
        return None
    repeats = math.prod(repeated.shape[a] for a in axes)
    # This also excludes times = 0: the sum over no elements is 0, but ∞ · 0 is NaN.
    if not is_in_range(inner, repeats):
        return None
    scaled = inner if repeats == 1 else inner.mul_scalar(scalar=weak_number(repeats))
    if not node.attrs["keepdims"]:
        scaled = reshaped(scaled, tuple(extent for i, extent in enumerate(inner.shape) if i + lead not in axes))
    return broadcasted(scaled, node.type.shape)


@rewrite(needs=["matmul", "neg"], unshared_operand=0)
def sum_of_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace Σᵢ (a b)ᵢⱼ over the rows by (Σᵢ aᵢ) b, and over the columns by a (Σⱼ bⱼ); also for −a b.

    The gradient of a value that was broadcast over the rows of a product is such a sum: a bias, for example.
    """
    (x,) = operands
    negated = source(x, "neg")
    product = negated or x
    # Not for float16, which is rounded between a sum and a product, nor for integers, which may wrap.
    if product.node.op.name != "matmul" or not has_kernels(product.dtype) or not product.type.size:
        return None
    row, column, axes = product.ndim - 2, product.ndim - 1, node.attrs["axes"]
    if row not in axes and column not in axes:
        return None
    a, b = (x.builder.value(i) for i in product.node.operands)
    a = a.sum(axes=(a.ndim - 2,), keepdims=True) if row in axes else a
    b = b.sum(axes=(b.ndim - 1,), keepdims=True) if column in axes else b
    y = a.matmul(b)
    batch_axes = tuple(axis for axis in axes if axis < row)
    y = reshaped(y.sum(axes=batch_axes) if batch_axes else y, node.type.shape)
    return -y if negated else y


@rewrite(needs=["matmul"], unshared_operand=0)
def transpose_of_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace (a b)ᵀ by bᵀ aᵀ if a or b is a transpose already: a product reads its operands in either order.

    The gradient with respect to a matrix that was transposed has this form.
    """
    (x,) = operands
    if x.node.op.name != "matmul" or node.attrs["axes"] != _last_two_swapped(x):
        return None
    a, b = (x.builder.value(i) for i in x.node.operands)
    # A batch times one matrix runs as one product of the flattened batch; a transposed batch would be copied for that.
    if min(a.ndim, b.ndim) < 2 or a.ndim == 2 < b.ndim:
        return None
    if _swapped_operand(a) is None and _swapped_operand(b) is None:
        return None  # the result would have one transpose more
    return (_swapped_operand(b) or b.transpose()) @ (_swapped_operand(a) or a.transpose())


def _swapped_operand(x: Value) -> Value | None:
    """Return the operand of x if x is a transpose of the last two axes; else None."""
    return source(x, "transpose") if x.node.attrs.get("axes") == _last_two_swapped(x) else None


def _last_two_swapped(x: Value) -> tuple[int, ...]:
    """Return the permutation that swaps the last two axes."""
    return (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)


# A rule for tensors that are zero except for spans along one axis, as gradients of slices are. Adding them would read
# and write mostly zeros; one `cat` of the spans copies each element once.


class Span(NamedTuple):
    """Slice of a tensor from `start` to `stop` along an axis, and its value."""

    start: int
    stop: int
    value: Value


@rewrite(needs=["pad", "cat"])
def sum_of_spans(node: Node, operands: Sequence[Value]) -> Value | None:
    """Replace a sum of two tensors whose nonzero spans do not overlap by a `cat` of the spans.

    Spans with the same bounds are added. A sum of many such tensors becomes one `cat`, one addition at a time; so do
    b and c in (a + b) + c.
    """
    if any(x.type != node.type for x in operands):
        return None
    joined = _add_spans(*operands)
    if joined is not None:
        return joined
    for other, x in (operands, operands[::-1]):
        if _axis(x) is None or other.node.op.name != "add":
            continue
        terms = [other.builder.value(i) for i in other.node.operands]
        for term, rest in (terms, terms[::-1]):
            joined = _add_spans(term, x) if term.type == rest.type == node.type else None
            if joined is not None:
                return rest + joined
    return None


def _add_spans(a: Value, b: Value) -> Value | None:
    """Return a + b as a `cat` if both consist of spans along the same axis; None if the spans overlap."""
    axis = _axis(a)
    if axis is None or axis != _axis(b):
        return None
    spans = [span for x in (a, b) for span in islice(_spans(x, axis), MOST_SPANS + 1)]
    merged = _merge_spans(sorted(spans, key=lambda span: span[:2])) if len(spans) <= MOST_SPANS else None
    return None if merged is None else _concatenate(merged, a, axis)


def _axis(x: Value) -> int | None:
    """Return the axis along which x consists of spans; None if it does not."""
    if x.node.op.name == "cat":
        return int(x.node.attrs["axis"])
    if x.node.op.name != "pad" or x.node.attrs["fill"] != 0:
        return None
    padded = [axis for axis, widths in enumerate(_widths(x)) if any(widths)]
    return padded[0] if len(padded) == 1 else None


def _widths(x: Value) -> list[tuple[int, int]]:
    """Return the widths of a pad before and after each axis."""
    flat = x.node.attrs["pad_width"]
    return list(zip(flat[::2], flat[1::2], strict=True))


def _spans(x: Value, axis: int, start: int = 0, depth: int = _NESTING_LIMIT) -> Iterator[Span]:
    """Yield the nonzero spans of x along an axis, looking into nested pads and cats."""
    stop = start + x.shape[axis]
    has_spans = depth > 0 and _axis(x) == axis
    inner = source(x, "pad") if has_spans else None
    if inner is not None:
        yield from _spans(inner, axis, start + _widths(x)[axis][0], depth - 1)
    elif has_spans:
        for operand in map(x.builder.value, x.node.operands):
            yield from _spans(operand, axis, start, depth - 1)
            start += operand.shape[axis]
    elif stop > start and uniform_value(x) != 0:
        yield Span(start, stop, x)


def _merge_spans(spans: Sequence[Span]) -> list[Span] | None:
    """Add up spans with the same bounds in a sorted list; None if other spans overlap."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1][:2] == span[:2]:
            merged[-1] = span._replace(value=merged[-1].value + span.value)
        elif merged and merged[-1].stop > span.start:
            return None
        else:
            merged.append(span)
    return merged


def _concatenate(spans: Sequence[Span], like: Value, axis: int) -> Value:
    """Concatenate the spans, with zeros in the gaps."""
    shape = like.shape
    parts: list[Value] = []
    position = 0
    for start, stop, value in (*spans, Span(shape[axis], shape[axis], like)):
        if start > position:
            parts.append(like.full_like(0.0, (*shape[:axis], start - position, *shape[axis + 1 :])))
        if stop > start:
            parts.append(value)
        position = stop
    return parts[0] if len(parts) == 1 else parts[0].cat(*parts[1:], axis=axis)
