"""Linear systems with triangular matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engine.graph.attributes import Attr
from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib.accumulate import accumulator, wide_out
from engine.oplib.conjugates import adjoint, conjugate
from engine.oplib.elementwise import unbroadcast
from engine.oplib.matrices import System, converted
from engine.oplib.widening import widened

#: FLOPs of one matrix up to which calling BLAS for it takes longer than computing it
_SMALL = 1 << 12
#: how many calls of BLAS take as long as one row of all matrices takes Python
_CALLS_A_ROW = 4


class TriangularSolve(System):
    """y with t y = b, or tᵀ y = b where `transpose`; t is the lower (else the upper) triangle of a, with the diagonal.

    a [batch…, n, n]: the other triangle is ignored, whatever it holds. b [n], [batch…, n] or [batch…, n, m], read as
    in `solve`. Batch axes broadcast. Where the diagonal holds a 0, y is infinite or NaN.
    Integers compute in float64, float16 in float32.
    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
    """

    name = "triangular_solve"
    section = "triangular_solve"
    is_captured = False
    operands = ("a", "b")
    dtypes = DTYPES
    attrs = {
        "lower": Attr("bool", True, "read the lower triangle of a; false: the upper one"),
        "transpose": Attr("bool", False, "solve with the triangle's transpose"),
    }
    gradient = "db = t⁻ᴴ g, da = −(db yᴴ), its triangle; with transpose db = (conj t)⁻¹ g, da = −(conj y dbᵀ)"
    samples = (
        Sample(Real(3, 3, diagonal=4), Real(3)),
        Sample(Real(3, 3, diagonal=4), Real(3, 2), lower=False),
        Sample(Real(2, 3, 3, diagonal=4), Real(3, 2), transpose=True),
        Sample(Real(3, 3, diagonal=4), Real(2, 3, 1), lower=False, transpose=True),
        Sample(Real(2, 1, 2, 2, diagonal=4), Real(3, 2, 2)),
        Sample(Real(2, 3, 3, diagonal=4), Real(3)),
        Sample(Real(2, 3, 3, diagonal=4), Real(2, 3)),
        Sample(Real(0, 0), Real(0, 2)),
    )

    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array, lower: bool, transpose: bool) -> None:
        """By substitution: what the diagonal holds divides, as it is."""
        xp = run.xp
        y = wide_out(xp, out)
        y[...] = b
        if y.size:
            t = xp.broadcast_to(xp.asarray(a, dtype=y.dtype), (*y.shape[:-2], *a.shape[-2:]))
            _substitute(run, t, y, lower, transpose)
        if y is not out:
            out[...] = y

    def vjp(self, g: Value, y: Value, a: Value, b: Value, *, lower: bool, transpose: bool) -> Sequence[Value | None]:
        """The system with the other transposition; what was ignored has no part in it."""
        y, a, b = widened(self, y, (a, b), {"lower": lower, "transpose": transpose})
        by_b = conjugate(a).triangular_solve(g, lower=lower, transpose=not transpose)
        by_t = unbroadcast(-(conjugate(y) @ by_b.transpose() if transpose else by_b @ adjoint(y)), a)
        return by_t.tril() if lower else by_t.triu(), unbroadcast(by_b, b)

    def flops(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """n² for each right-hand side."""
        return int(out.size) * types[0].shape[-1]

    def workspace(self, out: Any, a: TensorType, b: TensorType, **attrs: Any) -> int:
        """a and the answers where they have another dtype than the computation; a matrix for BLAS, or a row of all."""
        dtype = accumulator(out)
        n = a.shape[-1]
        row = out.size // n if out.size and _is_swept(out.shape) else 0
        scratch = max(n * n, row) if out.size else 0
        return dtype.itemsize * (converted(dtype, a, out) + scratch)


@DeviceFunction
def _substitute(run: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """y = op(t)⁻¹ y, all matrices at once."""
    if transpose:
        _all_at_once(run, t.swapaxes(-1, -2), y, not lower)
    else:
        _all_at_once(run, t, y, lower)


@_substitute.on("cpu")
def _substitute_on_cpu(run: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """The same where matrices are small and many, else one by one."""
    (_substitute.general if _is_swept(y.shape) else _one_by_one)(run, t, y, lower, transpose)


def _is_swept(shape: Shape) -> bool:
    """Whether y of this shape is found a row of all matrices at a time."""
    n, m = shape[-2:]
    return n * n * m <= _SMALL and math.prod(shape[:-2]) > _CALLS_A_ROW * n


def _all_at_once(run: RunContext, t: Array, y: Array, lower: bool) -> None:
    """By substitution, a row of all matrices at a time, as exact as BLAS.

    In every matrix y is what a triangle would give of which each element differs by n ε at most: N. J. Higham,
    Accuracy and Stability of Numerical Algorithms (2002), theorem 8.5, which holds for any order of the sums.
    """
    n = y.shape[-2]
    known = run.xp.empty_like(y[..., :1, :])
    for i in run.through(range(n) if lower else reversed(range(n))):
        row, others = slice(i, i + 1), slice(0, i) if lower else slice(i + 1, n)
        run.xp.matmul(t[..., row, others], y[..., others, :], out=known)
        y[..., row, :] -= known
        y[..., row, :] /= t[..., row, row]


def _one_by_one(run: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """BLAS's trsm."""
    from scipy.linalg import get_blas_funcs  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    (trsm,) = get_blas_funcs(("trsm",), (y,))
    # BLAS counts along columns: it reads tᵀ and yᵀ, and solves yᵀ op(t)ᵀ = bᵀ from the right, in place.
    _for_each(partial(trsm, 1, side=1, lower=not lower, trans_a=transpose, overwrite_b=1), run, t, y)


def _for_each(solve: Callable[[Array, Array], Array], run: RunContext, t: Array, y: Array) -> None:
    if y.ndim > 2:
        for pair in zip(t, y, strict=True):
            _for_each(solve, run, *pair)
    else:
        run.deadline.check()
        y[...] = solve(t.T, y.T).T


@_substitute.on("cuda")
def _substitute_on_cuda(_: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """The same, one call for the batch."""
    from cupyx.scipy.linalg import solve_triangular  # noqa: PLC0415 - optional

    y[...] = solve_triangular(t, y, trans="T" if transpose else "N", lower=lower, check_finite=False)
