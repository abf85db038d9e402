"""A rule of simplification for tensors that are zero but for spans along one axis: gradients of slices are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from engine.graph.ir import Node, Value
from engine.graph.rewrite_rule import rewrite
from engine.rewrites.matching import fill_of, source

#: spans of one tensor, and how many tensors within one another are looked into: a client may have any number of both
MOST_SPANS: Final = 64
_LOOKS_INTO: Final = 4


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
    """Of a pad: what is before and behind, along each axis."""
    flat = x.node.attrs["pad_width"]
    return list(zip(flat[::2], flat[1::2], strict=True))


def _spans(x: Value, axis: int, start: int = 0, depth: int = _LOOKS_INTO) -> Iterator[Span]:
    """What x is made of along an axis, but for zeros."""
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
