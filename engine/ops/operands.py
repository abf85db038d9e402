"""Errors that several families raise about the shape of an operand."""

from __future__ import annotations

from engine.errors import ShapeMismatch
from engine.tensor_type import Shape, TensorType, show_shape


def wrong_shape(i: int, name: str, wanted: str, got: TensorType) -> ShapeMismatch:
    """The error for operand `i` called `name` that must have `wanted` and does not."""
    shown = show_shape(got.shape)
    return ShapeMismatch(
        f"operand {i} ({name}) must have {wanted}, but has shape {shown}", operand=i, expected=wanted, got=shown
    )


def require_shape(type: TensorType, shape: Shape, i: int, name: str, why: str) -> None:
    """Raise ShapeMismatch, saying why, unless operand `i` called `name` has this shape."""
    if type.shape != shape:
        raise wrong_shape(i, name, f"shape {show_shape(shape)}, {why}", type)


def require_extent(type: TensorType, axis: int, extent: int, i: int, name: str, why: str) -> None:
    """Raise ShapeMismatch, saying why, unless operand `i` called `name` has this extent on `axis`."""
    if type.shape[axis] != extent:
        raise wrong_shape(i, name, f"extent {extent} on axis {axis} ({why})", type)
