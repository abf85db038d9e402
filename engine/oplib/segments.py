"""Reductions of rows by segment, by any ufunc that is associative: rows of a segment are brought together first."""

from __future__ import annotations

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import INT64, DType, HostArray, TensorType


@DeviceFunction
def reduce_segments(run: RunContext, ufunc: str, x: Array, segment_ids: Array, out: Array) -> None:
    """out[s, …] = the reduction of x[i, …] over the rows i with segment_ids[i] = s; where there is none, it is left.

    In log₂ n rounds, each of which takes in twice as many rows of the same segment.
    """
    xp, n, distance = run.xp, len(segment_ids), 1
    if not x.size:
        return
    order = xp.argsort(segment_ids, kind="stable")
    ids, rows = segment_ids[order], x[order].astype(out.dtype)
    while distance < n:
        same = (ids[distance:] == ids[:-distance]).reshape(-1, *[1] * (x.ndim - 1))
        joined = getattr(xp, ufunc)(rows[distance:], rows[:-distance])
        rows[distance:] = xp.where(same, joined, rows[distance:])
        distance *= 2
    lasts = xp.flatnonzero(xp.append(ids[1:] != ids[:-1], True))
    out[ids[lasts]] = rows[lasts]


@reduce_segments.on("cpu")
def _by_ranges(_: RunContext, ufunc: str, x: HostArray, segment_ids: HostArray, out: HostArray) -> None:
    """By NumPy's reduction of ranges."""
    if not x.size:
        return
    order = np.argsort(segment_ids, kind="stable")
    starts, places = _runs(segment_ids[order])
    rows = x[order].astype(out.dtype, copy=False)
    del order
    out[places] = getattr(np, ufunc).reduceat(rows, starts, axis=0)


def _runs(ids: HostArray) -> tuple[HostArray, HostArray]:
    """Where another id begins, and which that is."""
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    return starts, ids[starts]


def segment_bytes(out: TensorType, dtype: DType, x: TensorType, segment_ids: TensorType) -> int:
    """What `reduce_segments` allocates, which is most while it looks for runs, brings rows in order, or reduces."""
    count = x.shape[0]
    if not x.size:
        return 0
    runs, width = min(count, out.shape[0]), x.size // count
    order, ids = INT64.itemsize * count, segment_ids.dtype.itemsize
    kept = runs * (INT64.itemsize + ids)
    looking = order + (ids + 2) * count + kept
    casting = x.size * x.dtype.itemsize if x.dtype != dtype else 0
    rows = x.size * dtype.itemsize
    return max(looking, order + kept + casting + rows, kept + rows + runs * width * dtype.itemsize)
