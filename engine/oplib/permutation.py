"""Axes put in order, and into another shape."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Value


def permute(x: Value, order: Sequence[int]) -> Value:
    """x with its axes in this order; x itself where they are."""
    return x if list(order) == list(range(x.ndim)) else x.transpose(axes=tuple(order))


def unpermute(x: Value, order: Sequence[int]) -> Value:
    """What `permute` by `order` made x from."""
    return permute(x, inverse(order))


def shaped(x: Value, shape: Sequence[int]) -> Value:
    """x in another shape; x itself where it has it."""
    return x if x.shape == tuple(shape) else x.reshape(shape=tuple(shape))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
