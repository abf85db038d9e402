"""Whether two sides computed the same."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from benchmarks.workload import Array
from engine.ir.run_report import IEEE, Precision

#: the largest difference of a result, relative to its largest number: sums of millions, in another order
TOLERANCE = {"float16": 5e-2, "float32": 1e-3, "float64": 1e-9}
#: and where operands of float32 are read with 11 bits, through dozens of layers and back
TOLERANCE_OF_TF32 = 5e-2


class Differs(Exception):
    """Two sides gave other results: a time would mean nothing."""


def largest_difference(
    ours: Sequence[Array],
    theirs: Sequence[Array],
    dtype: str,
    precision: Precision = IEEE,
    vanishing: Container[int] = (),
) -> float:
    """Of all results, relative to the largest number in each. Raises Differs where it is more than the dtype allows,
    or the precision in which float32 is read.

    The `vanishing` ones are zero but for what was rounded on the way: relative to the largest number of all.
    """
    if [a.shape for a in ours] != [np.shape(b) for b in theirs]:
        raise Differs(f"results of shapes {[a.shape for a in ours]} and {[np.shape(b) for b in theirs]}")
    largest = max(map(_largest, theirs))
    worst = max(
        _difference(a, b, largest if k in vanishing else _largest(b))
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True))
    )
    allowed = TOLERANCE_OF_TF32 if precision != IEEE and dtype == "float32" else TOLERANCE[dtype]
    if not worst <= allowed:
        raise Differs(f"results are {worst:.1e} apart, where {allowed} was allowed")
    return worst


def _largest(a: Array) -> float:
    return float(np.abs(a).max(initial=0.0))


def _difference(a: Array, b: Array, largest: float) -> float:
    if not a.size:
        return 0.0
    scale = max(largest, 1e-30)
    wide = "complex128" if np.iscomplexobj(a) else "float64"
    return float(np.abs(np.asarray(a, wide) - b).max()) / scale
