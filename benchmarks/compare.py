"""Whether two sides computed the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.workload import Array

#: the largest difference of a result, relative to its largest number: sums of millions, in another order
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


class Differs(Exception):
    """Two sides gave other results: a time would mean nothing."""


def largest_difference(ours: Sequence[Array], theirs: Sequence[Array], dtype: str) -> float:
    """Of all results, relative to the largest number in each. Raises Differs where it is more than the dtype's."""
    if [a.shape for a in ours] != [np.shape(b) for b in theirs]:
        raise Differs(f"results of shapes {[a.shape for a in ours]} and {[np.shape(b) for b in theirs]}")
    worst = max(map(_difference, ours, theirs))
    if not worst <= TOLERANCE[dtype]:
        raise Differs(f"results are {worst:.1e} apart, where {TOLERANCE[dtype]} was allowed")
    return worst


def _difference(a: Array, b: Array) -> float:
    if not a.size:
        return 0.0
    scale = max(float(np.abs(b).max()), 1e-30)
    wide = "complex128" if np.iscomplexobj(a) else "float64"
    return float(np.abs(np.asarray(a, wide) - b).max()) / scale
