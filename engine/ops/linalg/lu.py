"""The LU decomposition, and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.graph import Value, adjoint, conjugate
from engine.ir.op import NONE, Array, Namespace, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, HostArray, Shape, TensorType, real_dtype
from engine.ops.common.numerics import wide
from engine.ops.linalg.lapack import lapack_bytes
from engine.ops.linalg.matrices import (
    Decomposition,
    SquareMatrix,
    admit,
    at_once,
    chunk_workspace,
    chunks,
    column,
    computed,
    factored,
    matrix_type,
    of_nothing,
    operations,
    square,
)

#: columns up to which all matrices of a chunk are factored together
_SMALL: Final = 16


class LU(Decomposition):
    """permutation, l, u with x[permutation] = l u: rows exchanged so that no entry of l is larger than 1.

    x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
    [batch…, k, n] upper triangular, k = min(m, n). Three results, read through get_output. To solve a system, `solve`
    is quicker. Complex numbers are compared by |Re| + |Im|. The gradient holds where the first k columns of
    x[permutation] are independent in their first k rows; where they are not, it is infinite or NaN. The permutation has
    none. A matrix that holds an infinity or NaN gives NaN for itself alone, and its rows as they are. Integers give
    float64; float16 is computed in a wider float, and rounded once.
    F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using triangular factorization (2011).
    PyTorch's `linalg.lu`, which has a matrix in place of the permutation; JAX's `lax.linalg.lu`, in another order.
    """

    name = "lu"
    section = "lu"
    several = True
    gradient = "of x[permutation]: l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ for square matrices; rows put back"
    samples = (
        Sample(Real(3, 3, diagonal=4)),
        Sample(Real(2, 4, 2, diagonal=4)),
        Sample(Real(2, 3, diagonal=4)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(2, 0)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[1.0, 3.0], [2.0, 4.0]]],
            value=([1, 0], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 4.0], [0.0, 1.0]]),
            cotangent=(None, [[0.0, 0.0], [10.0, 0.0]], [[1.0, 2.0], [0.0, 3.0]]),
            gradients=[[[-1.0, 3.0], [1.5, 0.5]]],
            source="by hand: l₂₁ = x₁₁ / x₂₁, u₂₂ = x₁₂ − x₁₁ x₂₂ / x₂₁",
        ),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """[..., m] of int64, [..., m, k] and [..., k, n]. Raises ShapeMismatch."""
        x = matrix_type(x)
        *lead, m, n = x.shape
        k = min(m, n)
        return TensorType((*lead, m), INT64), x.with_shape((*lead, m, k)), x.with_shape((*lead, k, n))

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array]) -> None:
        """LAPACK's getrf."""
        permutation, lower, upper = out
        if not x.size:
            permutation[...] = run.xp.arange(x.shape[-2])
            return
        for (part,), (left, right, rows) in chunks(run, [x], [lower, upper, permutation]):
            lost = ~run.xp.isfinite(part).all(axis=(-2, -1))
            part[lost] = 0
            admit(run, "lu", part)
            _factor(run, part, left, right, rows)
            left[lost] = right[lost] = np.nan

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value) -> Sequence[Value | None]:
        """Differentiate the square part and the part beside it, then move each row back."""
        if g[1] is None and g[2] is None:
            return (None,)
        if not x.type.size:
            return (of_nothing(x, g[1:]),)
        if wide(x) is not x:
            y = wide(x).lu()
        by_l, by_u = (None if part is None else wide(part) for part in g[1:])
        by_rows = _of_rows(y.output(1), y.output(2), by_l, by_u)
        places = column(y.output(0)).broadcast_to(shape=x.shape)
        return (by_rows.full_like(0.0).scatter_add(places, by_rows, axis=x.ndim - 2),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """For each matrix m n k − (m + n) k² / 2 + k³ / 3, twice: 2 n³ / 3 for a square one."""
        *lead, m, n = types[0].shape
        k = min(m, n)
        return operations(types[0], math.prod(lead) * (2 * m * n * k - (m + n) * k * k + 2 * k**3 // 3))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy; all once more, and these apart, where they are swept; else those of one matrix."""
        m, n = x.shape[-2:]
        k = min(m, n)
        count = min(at_once(x.shape), math.prod(x.shape[:-2]))
        return chunk_workspace(
            x, m * n + (max(m * n, (m + n) * k) + 3 * m if _is_swept((count, m, n)) else 0), 3 * m * n + 2 * m
        )


def _of_rows(lower: Value, upper: Value, by_l: Value | None, by_u: Value | None) -> Value:
    """The cotangent of l u, of those of l and u, one of which is there."""
    k, (m, n) = lower.shape[-1], (lower.shape[-2], upper.shape[-1])
    by_l = lower.full_like(0.0) if by_l is None else by_l
    by_u = upper.full_like(0.0) if by_u is None else by_u
    top, right = _rows(lower, 0, k), _columns(upper, 0, k)
    below = adjoint(top) @ _rows(by_l, 0, k)
    above = _columns(by_u, 0, k) @ adjoint(right)
    if n > k:
        below = below - _columns(by_u, k, n) @ adjoint(_columns(upper, k, n))
    if m > k:
        above = above - adjoint(_rows(lower, k, m)) @ _rows(by_l, k, m)
    square = _over(below.tril(offset=-1) + above.triu(), right)
    if m > k:
        square = _solved(top, square)
        return square.cat(_over(_rows(by_l, k, m), right), axis=square.ndim - 2)
    whole = square.cat(_columns(by_u, k, n), axis=square.ndim - 1) if n > k else square
    return _solved(top, whole)


def _solved(lower: Value, x: Value) -> Value:
    """l⁻ᴴ x."""
    return conjugate(lower).triangular_solve(x, transpose=True)


def _over(x: Value, upper: Value) -> Value:
    """x u⁻ᴴ."""
    return adjoint(upper.triangular_solve(adjoint(x), lower=False))


def _rows(x: Value, start: int, stop: int) -> Value:
    return _cut(x, (start, 0), (stop, x.shape[-1]))


def _columns(x: Value, start: int, stop: int) -> Value:
    return _cut(x, (0, start), (x.shape[-2], stop))


def _cut(x: Value, starts: tuple[int, int], stops: tuple[int, int]) -> Value:
    if starts == (0, 0) and stops == x.shape[-2:]:
        return x
    *lead, _, _ = x.shape
    return x.slice(starts=(*(0 for _ in lead), *starts), stops=(*lead, *stops))


@DeviceFunction
def _factor(run: RunContext, x: Array, lower: Array, upper: Array, rows: Array) -> None:
    """One matrix after the other, as CuPy's has no batch; all at once where they are small and many."""
    if _is_swept(x.shape):
        _sweep(run, x, lower, upper, rows)
        return
    from cupyx.scipy.linalg import lu_factor  # noqa: PLC0415 - optional

    for i in run.through(range(len(x))):
        factors, exchanges = lu_factor(x[i], check_finite=False)
        _place(run, factors, exchanges.get(), (lower[i], upper[i], rows[i]))


@_factor.on("cpu")
def _factor_on_cpu(run: RunContext, x: HostArray, lower: HostArray, upper: HostArray, rows: HostArray) -> None:
    """One matrix after the other: NumPy has none; all at once where they are small and many."""
    if _is_swept(x.shape):
        _sweep(run, x, lower, upper, rows)
        return
    from scipy.linalg import lapack  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    getrf = lapack.zgetrf if x.dtype.kind == "c" else lapack.dgetrf
    for i in run.through(range(len(x))):
        factors, exchanges, _ = getrf(x[i])
        _place(run, factors, exchanges, (lower[i], upper[i], rows[i]))


def _is_swept(shape: Shape) -> bool:
    """Whether a chunk of this shape is quicker a column of all matrices at a time than by a call each."""
    count, *extents = shape
    return min(extents) <= min(_SMALL, count)


def _place(run: RunContext, factors: Array, exchanges: HostArray, results: Sequence[Array]) -> None:
    """Take apart what getrf gives: l without its diagonal, u, and with which row each was exchanged in turn."""
    (lower, upper, rows), xp = results, run.xp
    k = min(factors.shape)
    order = np.arange(len(factors))
    for i, other in enumerate(exchanges):
        order[i], order[other] = order[other], order[i]
    rows[...] = xp.asarray(order)
    _split(xp, factors, lower, upper, k)


def _size(xp: Namespace, x: Array) -> Array:
    """Size by which LAPACK chooses a pivot: of a complex number, the sum of its parts."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else xp.abs(x)


def _split(xp: Namespace, factors: Array, lower: Array, upper: Array, k: int) -> None:
    lower[...] = xp.tril(factors[..., :k], -1)
    lower[..., xp.arange(k), xp.arange(k)] = 1
    upper[...] = xp.triu(factors[..., :k, :])


def _sweep(run: RunContext, x: Array, lower: Array, upper: Array, rows: Array) -> None:
    """A column of all matrices at a time, in x itself."""
    xp, (count, m, n) = run.xp, x.shape
    k, each = min(m, n), run.xp.arange(count)
    order = xp.tile(xp.arange(m), (count, 1))
    for j in range(k):
        largest = _size(xp, x[:, j:, j]).argmax(axis=1) + j
        for a in (x, order):
            taken = a[each, largest]
            a[each, largest] = a[:, j]
            a[:, j] = taken
        pivot = x[:, j, j]
        by = x[:, j + 1 :, j]
        by /= xp.where(pivot == 0, 1, pivot)[:, None]
        x[:, j + 1 :, j + 1 :] -= by[:, :, None] * x[:, j, None, j + 1 :]
    rows[...] = order
    _split(xp, x, lower, upper, k)


class Cofactors(Op):
    """y = det(x) x⁻ᵀ, each entry the minor that is left without its row and column, with its sign: ∂ det x / ∂x.

    Of x = u diag(s) vᴴ, the conjugate of u diag(Π of the other s) vᴴ, times det(u) det(vᴴ), which needs no inverse. Its
    own derivative is by the quotient by det x, and so NaN, or infinite, where x is singular.
    """

    name = "cofactors"
    internal = True
    is_captured = False
    operands = ("x",)
    dtypes = DTYPES
    gradient: ClassVar[str] = "(Σ(g ∘ z) z − z gᵀ z) / conj det x, z the conjugate of y"

    def infer(self, x: TensorType) -> ResultTypes:
        """Return the type of x."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Compute from singular values."""
        if out.size:
            for (part,), (y,) in chunks(run, [x], [out]):
                u, s, vh = factored(run, "svd", part)
                signs = run.xp.linalg.det(u) * run.xp.linalg.det(vh)
                others = _products_of_others(run.xp, s) * signs[:, None]
                y[...] = (u.conj() * others[:, None, :]) @ vh.conj()

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Differentiate det x · x⁻ᵀ."""
        z = conjugate(y)
        total = (g * z).sum(axes=(x.ndim - 2, x.ndim - 1), keepdims=True)
        return ((total * z - z @ g.transpose() @ z) / conjugate(x.det()).reshape(shape=total.shape),)

    def batch(self, mapped: Sequence[bool], x: Value) -> Value:
        """Itself: N is one more batch axis."""
        return cofactors(x)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it with the inverse."""
        (x,) = operands
        return [x.det().reshape(shape=(*x.shape[:-2], 1, 1)) * x.inv().transpose()]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """25 n³ for singular values and vectors, two determinants, and a product."""
        return operations(types[0], 29 * types[0].size * types[0].shape[-1])

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """A copy, vectors, two products, what a determinant is found in; LAPACK's."""
        n = types[0].shape[-1]
        return chunk_workspace(types[0], 5 * n * n + 5 * n, n * n) + lapack_bytes("svd", types[0])


def _products_of_others(xp: Namespace, s: Array) -> Array:
    """Multiply, for each entry along the last axis, all others; nothing is divided."""
    before, behind = xp.ones_like(s), xp.ones_like(s)
    before[:, 1:] = xp.cumprod(s[:, :-1], axis=-1)
    behind[:, :-1] = xp.cumprod(s[:, :0:-1], axis=-1)[:, ::-1]
    return before * behind


_OP: Final = Cofactors()


def cofactors(x: Value) -> Value:
    """Append the matrix of cofactors."""
    return x.builder.emit(_OP, (x,), NONE)


class Det(Decomposition):
    """y = det x of the square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 of a matrix without entries.

    `slogdet` neither overflows nor underflows. The gradient is the matrix of cofactors, exact for singular matrices,
    too; second derivatives of these are NaN, or infinite. A matrix that holds NaN gives NaN for itself alone. Integers
    give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and NumPy's `linalg.det`.
    """

    name = "det"
    section = "det"
    gradient = "g · the conjugate cofactors of x: of det(x) x⁻ᵀ where x is regular"
    samples = (
        Sample(Real(3, 3)),
        Sample(Real(2, 2, 2, diagonal=-7)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [3.0, 4.0]]],
            value=-2.0,
            cotangent=10.0,
            gradients=[[[40.0, -30.0], [-20.0, 10.0]]],
            source="by hand: a d − b c",
        ),
        Truth(
            operands=[[[1.0, 2.0], [2.0, 4.0]]],
            value=0.0,
            gradients=[[[4.0, -2.0], [-2.0, 1.0]]],
            source="by hand: a d − b c",
        ),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """[...]. Raises ShapeMismatch."""
        matrices = square(x)
        return matrices.with_shape(matrices.shape[:-2])

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """LAPACK's getrf."""
        if not x.size:
            out.fill(1)
            return
        for (part,), (y,) in chunks(run, [x], [out]):
            y[...] = run.xp.linalg.det(part)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Jacobi's formula."""
        if not x.type.size:
            return (of_nothing(x, [g]),)
        return (conjugate(cofactors(wide(x))) * wide(g).reshape(shape=(*g.shape, 1, 1)),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """2 n³ / 3 for each matrix."""
        return operations(types[0], 2 * types[0].size * types[0].shape[-1] // 3)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy, results, and LAPACK's copy."""
        n = x.shape[-1]
        return chunk_workspace(x, n * n + 1, n * n)


class SLogDet(SquareMatrix):
    """sign, log|det x| of the matrices on the last two axes: [batch…, n, n] → [batch…] twice; det x = sign · exp(log).

    The logarithm neither overflows nor underflows where the determinant does. A singular matrix has sign 0 and the
    logarithm −∞, and its gradient is NaN, as that of the inverse; the others of its batch are as if it were not there.
    The sign carries no gradient. Of a complex matrix it is complex, det x / |det x|, and the logarithm real.
    Several results, read through get_output.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    """

    name = "slogdet"
    section = "slogdet"
    gradient = "g · x⁻ᴴ, g the cotangent of log|det x|"
    several = True
    samples = (
        Sample(Real(3, 3, diagonal=7)),
        Sample(Real(2, 2, 2, diagonal=-7)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """x without its last two axes, twice, the second time real. Raises ShapeMismatch."""
        result = square(x).with_shape(x.shape[:-2])
        return result, result.with_dtype(real_dtype(result.dtype))

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, ...]) -> None:
        """LAPACK's getrf."""
        xp = run.xp
        found = xp.linalg.slogdet(xp.asarray(x, dtype=computed(run, out[0])))
        for y, part in zip(out, found, strict=True):
            y[...] = part

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value) -> Sequence[Value | None]:
        """Jacobi's formula."""
        by_log = g[1]
        if by_log is None:
            return (None,)
        return (adjoint(wide(x).inv()) * by_log.reshape(shape=(*by_log.shape, 1, 1)),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """2 n³ / 3 for each matrix."""
        return 2 * types[0].size * types[0].shape[-1] // 3
