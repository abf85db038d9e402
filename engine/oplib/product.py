"""The type of a matrix product, by NumPy's rules, and what BLAS can read."""

from __future__ import annotations

from engine.graph.errors import ShapeMismatch
from engine.graph.op import Array
from engine.graph.tensor_type import DType, Shape, TensorType, broadcast, promote, show_shape


def product_type(a: TensorType, b: TensorType) -> TensorType:
    """The type of a @ b. Raises ShapeMismatch."""
    _check_rank(0, "a", a)
    _check_rank(1, "b", b)
    _check_inner(a.shape, b.shape)
    return TensorType(product_shape(a.shape, b.shape), promote(a.dtype, b.dtype))


def product_shape(a: Shape, b: Shape) -> Shape:
    """The shape of a @ b, of operands whose inner extents agree. Raises ShapeMismatch for their batch axes."""
    columns = b[-1:] if len(b) > 1 else ()
    return (*_batches(a, b), *a[-2:-1], *columns)


def is_readable(x: Array | TensorType, dtype: DType) -> bool:
    """Whether BLAS can read x: in `dtype`, one of its last two axes dense, no step backwards or on the spot.

    NumPy multiplies other layouts (broadcast, flipped, strided on both axes) in a loop that is 100 times slower.
    """
    steps = x.strides[-2:]
    return bool(x.dtype == dtype and dtype.itemsize in steps and min(steps) > 0)


def _check_rank(i: int, name: str, x: TensorType) -> None:
    if not x.ndim:
        wanted = "at least 1 axis"
        raise ShapeMismatch(
            f"operand {i} ({name}) must have {wanted}, but is 0-d", operand=i, expected=wanted, got="0 axes"
        )


def _check_inner(a: Shape, b: Shape) -> None:
    axis = -2 if len(b) > 1 else -1
    if a[-1] != b[axis]:
        wanted, got = f"extent {a[-1]} at axis {axis}", show_shape(b)
        raise ShapeMismatch(
            f"operand 1 (b) must have {wanted}, as operand 0 (a) of shape {show_shape(a)} ends in {a[-1]}, "
            f"but has shape {got}",
            operand=1,
            expected=wanted,
            got=got,
        )


def _batches(a: Shape, b: Shape) -> Shape:
    try:
        return broadcast(a[:-2], b[:-2])
    except ShapeMismatch:
        raise ShapeMismatch(
            f"operand 1 (b) must have batch axes that broadcast with operand 0 (a) of shape {show_shape(a)}, "
            f"but has shape {show_shape(b)}",
            operand=1,
            expected=f"batch axes that broadcast with {show_shape(a[:-2])}",
            got=show_shape(b[:-2]),
        ) from None
