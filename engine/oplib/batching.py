"""Helpers of batching rules: mapped operands brought into line, and several values as one node."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Value


def size(mapped: Sequence[bool], operands: Sequence[Value]) -> int:
    """The batch size N: the leading extent of any mapped operand."""
    return next(x.shape[0] for m, x in zip(mapped, operands, strict=True) if m)


def align(mapped: Sequence[bool], operands: Sequence[Value]) -> list[Value]:
    """Operands that broadcast as before, with N in front: unit axes go behind N where a mapped rank is short."""
    rank = max(x.ndim - m for m, x in zip(mapped, operands, strict=True))
    return [_widen(x, rank) if m else x for m, x in zip(mapped, operands, strict=True)]


def _widen(x: Value, rank: int) -> Value:
    missing = rank - (x.ndim - 1)
    return x.reshape(shape=(x.shape[0], *[1] * missing, *x.shape[1:])) if missing else x


def expand(mapped: Sequence[bool], operands: Sequence[Value]) -> list[Value]:
    """All operands with the leading axis N: the ones that lack it are broadcast."""
    n = size(mapped, operands)
    return [x if m else x.broadcast_to(shape=(n, *x.shape)) for m, x in zip(mapped, operands, strict=True)]


def shift(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes (counted from the front) of the unbatched operand, as axes of the batched one."""
    return tuple(a + 1 for a in axes)
