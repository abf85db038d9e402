"""Linear systems: general, triangular, and Cholesky decomposition; the inverse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.graph import Value, adjoint, conjugate
from engine.ir.op import Array, ResultTypes
from engine.ir.run_context import DeviceFunction, DeviceMethod, RunContext
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import Shape, TensorType
from engine.ops.common.numerics import accumulation_buffer, accumulator, upcast_operands
from engine.ops.elementwise.base import unbroadcast
from engine.ops.linalg.lapack import factor_each, factor_each_bytes, is_for_lapack, solve_each, solve_each_bytes
from engine.ops.linalg.matrices import SquareMatrix, System, answer_each, compute_dtype, count_converted, wide_dtype

#: FLOPs of one matrix below which a BLAS call costs more than the computation
_CALL_FLOPS = 1 << 12
#: number of BLAS calls that take as long as one row of all matrices in Python
_CALLS_PER_ROW = 4


class Solve(System):
    """y such that a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices broadcast.

    b holds vectors if it is 1-d, as in NumPy 2, or if it has a's shape without the last axis and its last two axes
    cannot be matrices of n rows; otherwise it holds matrices. If a is singular, y is NaN, or very large if rounding
    hides the singularity; the other systems of the batch are unaffected. Integers give float64; float16 is computed in
    a wider float and rounded once.

    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
    """

    name = "solve"
    section = "solve"
    gradient = "db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast"
    samples = (
        Sample(Real(3, 3, diagonal=7), Real(3)),
        Sample(Real(3, 3, diagonal=7), Real(3, 2)),
        Sample(Real(2, 3, 3, diagonal=7), Real(3)),
        Sample(Real(2, 3, 3, diagonal=7), Real(2, 3)),
        Sample(Real(2, 2, 2, diagonal=7), Real(2, 2)),
        Sample(Real(3, 3, diagonal=7), Real(2, 3, 1)),
        Sample(Real(2, 1, 2, 2, diagonal=7), Real(3, 2, 2)),
        Sample(Real(0, 0), Real(0, 2)),
    )

    @DeviceMethod
    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Run LAPACK's gesv."""
        xp = run.xp
        left, right = (xp.asarray(x, dtype=compute_dtype(run, out)) for x in (a, b))
        left = xp.broadcast_to(left, (*out.shape[:-2], *a.shape[-2:]))
        answer_each(run, "solve", left, xp.broadcast_to(right, out.shape), out=out)

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Solve large systems with getrf and getrs, which gesv consists of."""
        if is_for_lapack(a.shape):
            solve_each(run, np.broadcast_to(a, (*out.shape[:-2], *a.shape[-2:])), np.broadcast_to(b, out.shape), out)
        else:
            Solve.forward.general(self, run, a, b, out=out)

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """Solve the system with aᴴ."""
        y, a, b = upcast_operands(self, y, (a, b), {})
        b_cotangent = adjoint(a).solve(g)
        return unbroadcast(-(b_cotangent @ adjoint(y)), a), unbroadcast(b_cotangent, b)

    def flops(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Return 2 n³ / 3 for each matrix, and 2 n² for each right-hand side."""
        n, m = out.shape[-2:]
        return int(math.prod(out.shape[:-2]) * (2 * n**3 // 3 + 2 * n * n * m))

    def workspace(self, out: Any, a: TensorType, b: TensorType) -> int:
        """Return the bytes in doubles: operands if converted, the results, and LAPACK's matrices."""
        if is_for_lapack(a.shape):
            return solve_each_bytes(out)
        n, m = out.shape[-2:]
        scratch = n * (n + m) if out.size else 0
        return int(wide_dtype(out.dtype).itemsize * (count_converted(wide_dtype(out.dtype), a, b) + out.size + scratch))


class Inv(SquareMatrix):
    """y = x⁻¹, for matrices on the last two axes.

    If x is singular, y is NaN, or very large if rounding hides the singularity; the other matrices of the batch are
    unaffected. To solve a system, use `solve`, which is faster and more accurate. Integers give float64; float16 is
    computed in a wider float and rounded once.
    """

    name = "inv"
    section = "solve"
    gradient = "−yᴴ g yᴴ"
    samples = (
        Sample(Real(3, 3, diagonal=7)),
        Sample(Real(2, 2, 2, diagonal=7)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Run LAPACK's gesv on the identity."""
        answer_each(run, "inv", run.xp.asarray(x, dtype=compute_dtype(run, out)), out=out)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Apply dy = −y dx y."""
        y, _ = upcast_operands(self, y, (x,), {})
        y_adjoint = adjoint(y)
        return (-(y_adjoint @ g @ y_adjoint),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """Return 2 n³ for each matrix."""
        return 2 * types[0].size * types[0].shape[-1]


class TriangularSolve(System):
    """y such that t y = b, or tᵀ y = b with `transpose`; t is the lower (or upper) triangle of a, with the diagonal.

    a [batch…, n, n]: the other triangle is ignored, whatever it contains. b [n], [batch…, n] or [batch…, n, m], read as
    in `solve`. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers are computed in
    float64, float16 in float32.

    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
    """

    name = "triangular_solve"
    section = "triangular_solve"
    attrs = {
        "lower": Attr("bool", True, "whether to read the lower triangle of a; false: the upper one"),
        "transpose": Attr("bool", False, "whether to solve with the triangle's transpose"),
    }
    gradient = "db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj y dbᵀ)"
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
        """Substitute, dividing by the diagonal whatever it holds."""
        xp = run.xp
        y = accumulation_buffer(xp, out)
        y[...] = b
        if y.size:
            t = xp.broadcast_to(xp.asarray(a, dtype=y.dtype), (*y.shape[:-2], *a.shape[-2:]))
            _substitute(run, t, y, lower, transpose)
        if y is not out:
            out[...] = y

    def vjp(self, g: Value, y: Value, a: Value, b: Value, *, lower: bool, transpose: bool) -> Sequence[Value | None]:
        """Solve the system with the opposite transposition; the ignored triangle gets zeros."""
        y, a, b = upcast_operands(self, y, (a, b), {"lower": lower, "transpose": transpose})
        b_cotangent = conjugate(a).triangular_solve(g, lower=lower, transpose=not transpose)
        t_cotangent = unbroadcast(
            -(conjugate(y) @ b_cotangent.transpose() if transpose else b_cotangent @ adjoint(y)), a
        )
        return t_cotangent.tril() if lower else t_cotangent.triu(), unbroadcast(b_cotangent, b)

    def flops(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Return n² for each right-hand side."""
        return int(out.size) * types[0].shape[-1]

    def workspace(self, out: Any, a: TensorType, b: TensorType, **attrs: Any) -> int:
        """Return the bytes of a and the results if converted, and of a BLAS matrix or a row of each matrix."""
        dtype = accumulator(out)
        n = a.shape[-1]
        row = out.size // n if out.size and _is_swept(out.shape) else 0
        scratch = max(n * n, row) if out.size else 0
        return dtype.itemsize * (count_converted(dtype, a, out) + scratch)


@DeviceFunction
def _substitute(run: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """Compute y = op(t)⁻¹ y, for all matrices at once."""
    if transpose:
        _sweep(run, t.swapaxes(-1, -2), y, not lower)
    else:
        _sweep(run, t, y, lower)


@_substitute.on("cpu")
def _substitute_on_cpu(run: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """Compute the same: all at once if matrices are small and many, else one by one."""
    (_substitute.general if _is_swept(y.shape) else _solve_with_blas)(run, t, y, lower, transpose)


def _is_swept(shape: Shape) -> bool:
    """Whether y of this shape is computed row by row over all matrices."""
    n, m = shape[-2:]
    return n * n * m <= _CALL_FLOPS and math.prod(shape[:-2]) > _CALLS_PER_ROW * n


def _sweep(run: RunContext, t: Array, y: Array, lower: bool) -> None:
    """Substitute row by row over all matrices at once, as accurately as BLAS.

    In every matrix, y is the exact result for a triangle whose elements differ by at most n ε: N. J. Higham, Accuracy
    and Stability of Numerical Algorithms (2002), theorem 8.5, which holds for any summation order.
    """
    n = y.shape[-2]
    partial_sums = run.xp.empty_like(y[..., :1, :])
    for i in run.checked(range(n) if lower else reversed(range(n))):
        row, solved = slice(i, i + 1), slice(0, i) if lower else slice(i + 1, n)
        run.xp.matmul(t[..., row, solved], y[..., solved, :], out=partial_sums)
        y[..., row, :] -= partial_sums
        y[..., row, :] /= t[..., row, row]


def _solve_with_blas(run: RunContext, t: Array, y: Array, lower: bool, transpose: bool) -> None:
    """Run BLAS's trsm on one matrix after another."""
    from scipy.linalg import get_blas_funcs  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    (trsm,) = get_blas_funcs(("trsm",), (y,))
    # BLAS is column-major: it reads tᵀ and yᵀ, and solves yᵀ op(t)ᵀ = bᵀ from the right, in place.
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
    """Compute the same with one call for the batch."""
    from cupyx.scipy.linalg import solve_triangular  # noqa: PLC0415 - optional

    y[...] = solve_triangular(t, y, trans="T" if transpose else "N", lower=lower, check_finite=False)


class Cholesky(SquareMatrix):
    """y lower triangular with a positive diagonal and y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.

    x is made symmetric (Hermitian) first, as in JAX, so that the gradient is symmetric and valid in every direction. A
    matrix that is not positive definite gives NaN; the other matrices of the batch are unaffected. Integers give
    float64; float16 is computed in a wider float and rounded once.

    I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
    """

    name = "cholesky"
    section = "cholesky"
    gradient = "(s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle with half the diagonal"
    samples = (
        Sample(Real(3, 3, low=-1, high=1, diagonal=4)),
        Sample(Real(2, 2, 2, low=-1, high=1, diagonal=4)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )

    @DeviceMethod
    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Run LAPACK's potrf on the symmetric part."""
        dtype = compute_dtype(run, out)
        symmetric = out if dtype == out.dtype else run.xp.empty(out.shape, dtype)
        run.xp.add(x, x.swapaxes(-1, -2).conj(), out=symmetric, dtype=dtype)
        symmetric *= 0.5
        answer_each(run, "cholesky", symmetric, out=out)

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Factor large matrices one by one, without transposing copies."""
        if is_for_lapack(x.shape):
            factor_each(run, x, out)
        else:
            Cholesky.forward.general(self, run, x, out=out)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Solve triangular systems, without forming an inverse."""
        y, _ = upcast_operands(self, y, (x,), {})
        product = adjoint(y) @ (g * 0.5)
        # Φ(yᴴ g) from half of yᴴ g: entries below the diagonal count twice, those on it once
        inner = product.tril() + product.tril(offset=-1)
        y_conjugate = conjugate(y)
        half = y_conjugate.triangular_solve(inner, transpose=True)
        outer = y_conjugate.triangular_solve(adjoint(half), transpose=True) * 0.5
        return (outer + adjoint(outer),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """Return n³ / 3 for each matrix."""
        return types[0].size * types[0].shape[-1] // 3

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of one matrix at a time if matrices are large, else of all."""
        return factor_each_bytes(x) if is_for_lapack(x.shape) else super().workspace(out, x)
