"""Errors that several families raise about the shape of an operand."""

from __future__ import annotations

from engine.ir.errors import ShapeMismatch, counted
from engine.ir.tensor_type import Shape, TensorType, show_shape


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


def require_axes(x: TensorType, least: int, why: str) -> None:
    """Raise ShapeMismatch unless the first operand has at least this many axes; `why` says what for."""
    if x.ndim < least:
        wanted = f"at least {counted(least, 'axis', 'axes')}"
        raise ShapeMismatch(
            f"needs {wanted} {why}, but the operand has {x.ndim}",
            operand=0,
            expected=wanted,
            got=counted(x.ndim, "axis", "axes"),
        )


def one_for_each_axis(ndim: int) -> str:
    """Describe an attribute with an entry for each axis."""
    return f"{counted(ndim, 'entry', 'entries')}, one for each axis"


def with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    """`shape` with another extent on one axis."""
    return (*shape[:axis], extent, *shape[axis + 1 :])
