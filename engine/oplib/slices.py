"""Parts of a tensor along one axis, and a tensor with zeros between its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from engine.graph.ir import Value


def cut(x: Value, axis: int, start: int, stop: int) -> Value:
    """x from `start` to `stop` on one axis."""
    stops = [stop if i == axis else extent for i, extent in enumerate(x.shape)]
    return x.slice(starts=[start if i == axis else 0 for i in range(x.ndim)], stops=stops)


def bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Where parts of these sizes start and stop when they lie one after the other."""
    return list(pairwise(accumulate(sizes, initial=0)))


def along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    """What to index an array by to see `start` to `stop` on one axis."""
    return (*[slice(None)] * axis, slice(start, stop))


def spread_out(x: Value, axis: int, step: int) -> Value:
    """x with step − 1 zeros between neighbours on `axis`: each entry gets a row of its own, padded to `step`."""
    if step == 1:
        return x
    (*before, extent), after = x.shape[: axis + 1], x.shape[axis + 1 :]
    rows = x.reshape(shape=(math.prod(x.shape[: axis + 1]), 1, math.prod(after)))
    padded = rows.pad(pad_width=(0, 0, 0, step - 1, 0, 0)).reshape(shape=(*before, extent * step, *after))
    return cut(padded, axis, 0, extent * step - step + 1)
