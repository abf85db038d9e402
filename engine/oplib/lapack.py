"""LAPACK on one matrix after the other, in doubles, as they lie; for matrices so large that this pays.

It counts along columns, and so reads the transpose of what lies row by row: a symmetric matrix is its own, and a system
is solved with the transpose of what was factored. NumPy's functions copy each matrix into another order first, and have
no Cholesky decomposition in blocks of their own.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.graph.run_context import RunContext
from engine.graph.tensor_type import FLOAT64, HostArray, Shape

#: rows from which a call for each matrix costs nothing beside what it does
_LARGE: Final = 64


def is_for_lapack(shape: Shape) -> bool:
    """Whether matrices of this shape, on its last two axes, are worth a call each."""
    return shape[-1] >= _LARGE


def solve_each(run: RunContext, a: HostArray, b: HostArray, out: HostArray) -> None:
    """out = a⁻¹ b for each matrix, all three broadcast alike; NaN where a is singular."""
    if not out.size:
        return
    lapack = _lapack()
    for place in run.through(np.ndindex(out.shape[:-2])):
        # both are copies, to be written over
        factors, pivots, refused = lapack.dgetrf(np.array(a[place], FLOAT64).T, overwrite_a=1)
        if refused:
            out[place] = np.nan
        else:
            right = np.array(b[place], FLOAT64, order="F")
            out[place] = lapack.dgetrs(factors, pivots, right, trans=1, overwrite_b=1)[0]


def solve_each_bytes(shape: Shape) -> int:
    """What `solve_each` allocates for results of this shape: one matrix, and its right-hand sides."""
    n, m = shape[-2:]
    return FLOAT64.itemsize * n * (n + m)


def factor_each(run: RunContext, x: HostArray, out: HostArray) -> None:
    """The lower triangular matrix of each (x + xᵀ) / 2; NaN where that is not positive definite."""
    lapack = _lapack()
    for place in run.through(np.ndindex(out.shape[:-2])):
        even = np.add(x[place], x[place].T, dtype=FLOAT64)
        even *= 0.5
        # the lower triangle of what lies row by row is LAPACK's upper one
        factor, refused = lapack.dpotrf(even.T, lower=0, clean=1, overwrite_a=1)
        out[place] = np.nan if refused else factor.T


def factor_each_bytes(shape: Shape) -> int:
    """What `factor_each` allocates: one matrix."""
    return FLOAT64.itemsize * shape[-1] ** 2


def _lapack() -> Any:
    from scipy.linalg import lapack  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    return lapack
