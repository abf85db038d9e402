"""Short rows on the CPU. NumPy starts anew for each row of a reduction, which takes longer than a short row itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array, KernelCall
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray, Shape, TensorType

#: elements of a chunk: two of them fit in a core's own cache
CHUNK_ELEMENTS = 1 << 15
LONGEST_TRANSPOSED = 64
#: beyond it NumPy's pairwise sum is the more accurate one, and no slower
LONGEST_MULTIPLIED = 128


def _short_rows(x: HostArray, axes: Sequence[int], longest: int) -> HostArray | None:
    """x as a matrix with one row for each group over `axes`, where such rows lie in memory and are short."""
    length = _row_length(x.shape, axes)
    return x.reshape(-1, length) if x.flags.c_contiguous and 0 < length <= longest else None


def _row_length(shape: Shape, axes: Sequence[int]) -> int:
    """The length of the rows over `axes`, where these are the last axes; else 0."""
    last = tuple(axes) == tuple(range(len(shape) - len(axes), len(shape)))
    return math.prod(shape[a] for a in axes) if axes and last else 0


def _short_columns(x: HostArray, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """The extents before, over and behind `axes`, where these are neighbours, and little lies behind each of them."""
    before, behind = math.prod(x.shape[: axes[0]]) if axes else 0, math.prod(x.shape[axes[-1] + 1 :]) if axes else 0
    neighbours = tuple(axes) == tuple(range(axes[0], axes[-1] + 1)) if axes else False
    fits = neighbours and x.flags.c_contiguous and x.size and 1 < behind <= LONGEST_TRANSPOSED
    return (before, x.size // (before * behind), behind) if fits else None


def add_up(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
    """Σ x over axes in the dtype of `out`."""
    function, arguments = adding_up(run, x, out=out, axes=axes, keepdims=keepdims)
    function(*arguments)


@DeviceFunction
def adding_up(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """The call that adds up."""
    return partial(run.xp.sum, x, axis=axes, dtype=out.dtype, keepdims=keepdims, out=out), ()


@adding_up.on("cpu")
def _adding_up(_: RunContext, x: HostArray, *, out: HostArray, axes: tuple[int, ...], keepdims: bool) -> KernelCall:
    """The same; short rows of floats, and short columns side by side, as a product with ones."""
    if x.dtype == out.dtype and x.dtype.kind == "f":
        rows = _short_rows(x, axes, LONGEST_MULTIPLIED)
        if rows is not None:
            return np.matmul, (rows, np.ones(rows.shape[1], x.dtype), out.reshape(-1))
        columns = _short_columns(x, axes)
        if columns is not None:
            before, over, behind = columns
            return np.matmul, (np.ones((1, over), x.dtype), x.reshape(columns), out.reshape(before, 1, behind))
    return np.add.reduce, (x, axes, out.dtype, out, keepdims)


@DeviceFunction
def axis_first(run: RunContext, x: Array, out: Array, axis: int) -> Iterator[tuple[Array, Array]]:
    """Pairs of x and `out`, or of chunks of both, of one shape, with `axis` moved to the front.

    Whoever iterates fills the second of each pair before asking for the next.
    """
    yield run.xp.moveaxis(x, axis, 0), run.xp.moveaxis(out, axis, 0)


@axis_first.on("cpu")
def _axis_first(run: RunContext, x: HostArray, out: HostArray, axis: int) -> Iterator[tuple[HostArray, HostArray]]:
    """The same; short rows in transposed chunks."""
    rows = _short_rows(x, (axis,), LONGEST_TRANSPOSED)
    if rows is None:
        yield from axis_first.general(run, x, out, axis)
        return
    results, step = out.reshape(rows.shape), CHUNK_ELEMENTS // rows.shape[1]
    for start in range(0, len(rows), step):
        chunk = np.ascontiguousarray(rows[start : start + step].T)
        result = np.empty(chunk.shape, out.dtype)
        yield chunk, result
        results[start : start + step] = result.T


def chunk_size(x: TensorType, axis: int) -> int:
    """Elements of the chunks in which `axis_first` hands x out, one of them and the next; 0 for x as it is."""
    is_short = x.is_dense and 0 < _row_length(x.shape, (axis,)) <= LONGEST_TRANSPOSED
    return min(x.size, 2 * CHUNK_ELEMENTS) if is_short else 0
