"""Short rows on the CPU. NumPy starts anew for each row of a reduction, which takes longer than a short row itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from engine.graph.op import Array, KernelCall, Namespace
from engine.graph.tensor_type import Shape, TensorType

#: elements of a chunk: two of them fit in a core's own cache
PIECE_ELEMENTS = 1 << 15
LONGEST_TRANSPOSED = 64
#: beyond it NumPy's pairwise sum is the more accurate one, and no slower
LONGEST_MULTIPLIED = 128


def short_rows(xp: Namespace, x: Array, axes: Sequence[int], longest: int) -> Array | None:
    """x as a matrix with one row for each group over `axes`, where such rows lie in memory and are short."""
    length = _row_length(x.shape, axes)
    return x.reshape(-1, length) if xp is np and x.flags.c_contiguous and 0 < length <= longest else None


def _row_length(shape: Shape, axes: Sequence[int]) -> int:
    """The length of the rows over `axes`, where these are the last axes; else 0."""
    last = tuple(axes) == tuple(range(len(shape) - len(axes), len(shape)))
    return math.prod(shape[a] for a in axes) if axes and last else 0


def short_columns(xp: Namespace, x: Array, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """The extents before, over and behind `axes`, where these are neighbours, and little lies behind each of them."""
    before, behind = math.prod(x.shape[: axes[0]]) if axes else 0, math.prod(x.shape[axes[-1] + 1 :]) if axes else 0
    neighbours = tuple(axes) == tuple(range(axes[0], axes[-1] + 1)) if axes else False
    fits = neighbours and x.flags.c_contiguous and x.size and 1 < behind <= LONGEST_TRANSPOSED
    return (before, x.size // (before * behind), behind) if xp is np and fits else None


def add_up(xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
    """Σ x over axes in the dtype of `out`."""
    function, arguments = adding_up(xp, x, out=out, axes=axes, keepdims=keepdims)
    function(*arguments)


def adding_up(xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """The call that adds up: short rows of floats, and short columns side by side, as a product with ones."""
    if x.dtype == out.dtype and x.dtype.kind == "f":
        rows = short_rows(xp, x, axes, LONGEST_MULTIPLIED)
        if rows is not None:
            return xp.matmul, (rows, xp.ones(rows.shape[1], x.dtype), out.reshape(-1))
        columns = short_columns(xp, x, axes)
        if columns is not None:
            before, over, behind = columns
            return xp.matmul, (xp.ones((1, over), x.dtype), x.reshape(columns), out.reshape(before, 1, behind))
    if xp is np:
        return np.add.reduce, (x, axes, out.dtype, out, keepdims)
    return partial(xp.sum, x, axis=axes, dtype=out.dtype, keepdims=keepdims, out=out), ()


def axis_first(xp: Namespace, x: Array, out: Array, axis: int) -> Iterator[tuple[Array, Array]]:
    """x and `out`, of one shape, with `axis` moved to the front: as they are, or short rows in transposed chunks.

    Whoever iterates fills the second of each pair before asking for the next.
    """
    rows = short_rows(xp, x, (axis,), LONGEST_TRANSPOSED)
    if rows is None:
        yield xp.moveaxis(x, axis, 0), xp.moveaxis(out, axis, 0)
        return
    results, step = out.reshape(rows.shape), PIECE_ELEMENTS // rows.shape[1]
    for start in range(0, len(rows), step):
        chunk = xp.ascontiguousarray(rows[start : start + step].T)
        result = xp.empty(chunk.shape, out.dtype)
        yield chunk, result
        results[start : start + step] = result.T


def chunk_size(x: TensorType, axis: int) -> int:
    """Elements of the chunks in which `axis_first` hands x out, one of them and the next; 0 for x as it is."""
    is_short = x.is_dense and 0 < _row_length(x.shape, (axis,)) <= LONGEST_TRANSPOSED
    return min(x.size, 2 * PIECE_ELEMENTS) if is_short else 0
