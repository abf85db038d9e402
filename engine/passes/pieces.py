"""A rule of simplification for tensors that are zero but for pieces along one axis: gradients of slices are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from engine.graph.ir import Node, Value
from engine.passes.matching import fill_of, needs_operand, source

#: pieces of one tensor, and how many tensors within one another are looked into: a client may have any number of both
MOST_PIECES: Final = 64
_LOOKS_INTO: Final = 4


class Piece(NamedTuple):
    """What stands from `start` to `stop`."""

    start: int
    stop: int
    value: Value


@needs_operand("pad", "cat")
def sum_of_pieces(node: Node, operands: Sequence[Value]) -> Value | None:
    """A sum whose operands are zero where the other one is not, as what stands in each place: nothing is added to 0.

    Pieces in the same place are added up. What is a sum of many becomes one `cat`, sum by sum, and so do the pieces in
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
    """a + b, of two that are made of pieces along the same axis; None where they overlap."""
    axis = _axis(a)
    if axis is None or axis != _axis(b):
        return None
    pieces = [piece for x in (a, b) for piece in islice(_pieces(x, axis), MOST_PIECES + 1)]
    merged = _merged(sorted(pieces, key=lambda piece: piece[:2])) if len(pieces) <= MOST_PIECES else None
    return None if merged is None else _joined(merged, a, axis)


def _axis(x: Value) -> int | None:
    """The axis along which x is made of pieces; None where it is not."""
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


def _pieces(x: Value, axis: int, start: int = 0, depth: int = _LOOKS_INTO) -> Iterator[Piece]:
    """What x is made of along an axis, but for zeros."""
    stop = start + x.shape[axis]
    is_made = depth > 0 and _axis(x) == axis
    inner = source(x, "pad") if is_made else None
    if inner is not None:
        yield from _pieces(inner, axis, start + _widths(x)[axis][0], depth - 1)
    elif is_made:
        for operand in map(x.builder.value, x.node.operands):
            yield from _pieces(operand, axis, start, depth - 1)
            start += operand.shape[axis]
    elif stop > start and fill_of(x) != 0:
        yield Piece(start, stop, x)


def _merged(pieces: Sequence[Piece]) -> list[Piece] | None:
    """Pieces in their order, those of one place added up; None where others overlap."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and merged[-1][:2] == piece[:2]:
            merged[-1] = piece._replace(value=merged[-1].value + piece.value)
        elif merged and merged[-1].stop > piece.start:
            return None
        else:
            merged.append(piece)
    return merged


def _joined(pieces: Sequence[Piece], like: Value, axis: int) -> Value:
    """The pieces in their places, and zeros between them."""
    shape = like.shape
    parts: list[Value] = []
    place = 0
    for start, stop, value in (*pieces, Piece(shape[axis], shape[axis], like)):
        if start > place:
            parts.append(like.full_like(0.0, (*shape[:axis], start - place, *shape[axis + 1 :])))
        if stop > start:
            parts.append(value)
        place = stop
    return parts[0] if len(parts) == 1 else parts[0].cat(*parts[1:], axis=axis)
