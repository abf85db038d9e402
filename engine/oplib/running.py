"""Running sums. On the CPU, NumPy's wait for each sum before they begin the next."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType, HostArray, TensorType

#: elements that a product with a triangle of ones adds up
_WIDTH: Final = 32
#: elements of a row from which that is faster, and of the rows that are taken at a time
LEAST_ROW: Final = 4 * _WIDTH
_CHUNK: Final = 1 << 16
#: elements of a slice across the axis from which one addition for each is faster
LEAST_SLICE: Final = 256


@DeviceFunction
def running_sums(run: RunContext, x: Array, out: Array, axis: int) -> None:
    """out[i] = x[0] + … + x[i] along `axis`, in the dtype of `out`, which is dense.

    An infinity or NaN stays in all sums that have it. Where a sum of some elements overflows, one of more may not.
    """
    run.xp.cumsum(x, axis=axis, dtype=out.dtype, out=out)


@running_sums.on("cpu")
def _running_sums(run: RunContext, x: HostArray, out: HostArray, axis: int) -> None:
    extent, behind = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if x.dtype != out.dtype:
        np.cumsum(x, axis=axis, dtype=out.dtype, out=out)
    elif out.dtype.kind == "f" and extent and behind == 1 and extent >= LEAST_ROW:
        try:
            rows = np.reshape(x, (-1, extent), copy=False)
        except ValueError:  # its rows do not lie evenly
            np.cumsum(x, axis=axis, dtype=out.dtype, out=out)
        else:
            _along_rows(run, rows, out.reshape(rows.shape))
    elif extent and x.size >= LEAST_SLICE * extent and behind >= _WIDTH:
        x, out = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
        out[0] = x[0]
        for i in run.through(range(1, len(x))):
            np.add(out[i - 1], x[i], out=out[i])
    else:
        np.cumsum(x, axis=axis, dtype=out.dtype, out=out)


def running_bytes(x: TensorType, dtype: DType, axis: int) -> int:
    """What `running_sums` allocates: chunks of x, and the sums of what its products add up."""
    extent, behind = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if dtype.kind != "f" or behind != 1 or extent < LEAST_ROW:
        return 0
    chunk = min(x.size, max(1, _CHUNK // extent) * extent)
    return dtype.itemsize * (chunk + chunk // _WIDTH)


def _along_rows(run: RunContext, x: HostArray, out: HostArray) -> None:
    step = max(1, _CHUNK // x.shape[1])
    for start in run.through(range(0, len(x), step)):
        chunk, sums = x[start : start + step], out[start : start + step]
        is_finite = _by_products(chunk, sums)
        for row in np.flatnonzero(~is_finite):
            np.cumsum(chunk[row], out=sums[row])


def _by_products(x: HostArray, out: HostArray) -> HostArray:
    """Which rows are finite; the others are wrong: a product has 0 · ∞ beside each infinity.

    The sum of all chunks before one is added to its first element.
    """
    rows, extent = x.shape
    whole, triangle = extent - extent % _WIDTH, _triangle(out.dtype)
    chunks = np.array(x[:, :whole], order="C").reshape(-1, _WIDTH)
    sums = np.matmul(chunks, triangle[0]).reshape(rows, -1)
    np.cumsum(sums, axis=1, out=sums)
    is_finite: HostArray = np.isfinite(sums[:, -1])
    chunks.reshape(rows, -1, _WIDTH)[:, 1:, 0] += sums[:, :-1]
    # one product, where there is nothing between the chunks of two rows
    shape = (-1, _WIDTH) if whole == extent else (rows, -1, _WIDTH)
    np.matmul(chunks.reshape(shape), triangle, out=out[:, :whole].reshape(shape))
    if whole < extent:
        np.cumsum(x[:, whole:], axis=1, out=out[:, whole:])
        np.add(out[:, whole:], sums[:, -1:], out=out[:, whole:])
    return is_finite


@cache
def _triangle(dtype: DType) -> HostArray:
    return np.triu(np.ones((_WIDTH, _WIDTH), dtype))
