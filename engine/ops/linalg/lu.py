"""LU decomposition and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.ir.graph import Value, adjoint, conjugate
from engine.ir.op import NONE, Array, Namespace, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, HostArray, Shape, TensorType, promote, real_dtype
from engine.ops.common.numerics import upcast
from engine.ops.linalg.lapack import lapack_bytes
from engine.ops.linalg.matrices import (
    Decomposition,
    SquareMatrix,
    admit,
    chunk_workspace,
    chunks,
    column,
    compute_dtype,
    empty_gradient,
    factorize,
    matrices_per_chunk,
    matrix_type,
    real_flops,
    square,
)

#: columns up to which a chunk is factored column by column over all its matrices
_MOST_COLUMNS: Final = 16


class LU(Decomposition):
    """permutation, l, u with x[permutation] = l u: rows are exchanged so that no entry of l is larger than 1.

    x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
    [batch…, k, n] upper triangular, k = min(m, n). To solve a system, use `solve`, which is faster. Complex numbers are
    compared by |Re| + |Im|. The gradient is valid if the first k columns of x[permutation] are independent in their
    first k rows; otherwise it is infinite or NaN. The permutation has no gradient. A matrix with an infinity or NaN
    gives NaN in l and u, and its rows are not exchanged; the other matrices of the batch are unaffected. Integers give
    float64; float16 is computed in a wider float and rounded once.

    PyTorch: `linalg.lu`, which returns a matrix instead of the permutation. JAX: `lax.linalg.lu`, which returns the
    results in another order. F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using triangular
    factorization (2011).
    """

    name = "lu"
    section = "lu"
    several = True
    gradient = "for square matrices, l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ with rows moved back to their places"
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
        """Return the types int64 [..., m], [..., m, k] and [..., k, n]. Raises ShapeMismatch."""
        x = matrix_type(x)
        *lead, m, n = x.shape
        k = min(m, n)
        return TensorType((*lead, m), INT64), x.with_shape((*lead, m, k)), x.with_shape((*lead, k, n))

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array]) -> None:
        """Run LAPACK's getrf."""
        permutation, lower, upper = out
        if not x.size:
            permutation[...] = run.xp.arange(x.shape[-2])
            return
        for (matrices,), (lower_part, upper_part, permutation_part) in chunks(run, [x], [lower, upper, permutation]):
            # LAPACK would spread an infinity or NaN unpredictably: factor zeros instead, and mark the results
            invalid = ~run.xp.isfinite(matrices).all(axis=(-2, -1))
            matrices[invalid] = 0
            admit(run, "lu", matrices)
            _factor(run, matrices, lower_part, upper_part, permutation_part)
            lower_part[invalid] = upper_part[invalid] = np.nan

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value) -> Sequence[Value | None]:
        """Differentiate the square block and the rest, then undo the row permutation."""
        if g[1] is None and g[2] is None:
            return (None,)
        if not x.type.size:
            return (empty_gradient(x, g[1:]),)
        if upcast(x) is not x:
            y = upcast(x).lu()
        l_cotangent, u_cotangent = (None if cotangent is None else upcast(cotangent) for cotangent in g[1:])
        permuted_gradient = _product_cotangent(y.output(1), y.output(2), l_cotangent, u_cotangent)
        row_indices = column(y.output(0)).broadcast_to(shape=x.shape)
        return (permuted_gradient.full_like(0.0).scatter_add(row_indices, permuted_gradient, axis=x.ndim - 2),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return twice m n k − (m + n) k² / 2 + k³ / 3 for each matrix: 2 n³ / 3 for a square one."""
        *lead, m, n = types[0].shape
        k = min(m, n)
        return real_flops(types[0], math.prod(lead) * (2 * m * n * k - (m + n) * k * k + 2 * k**3 // 3))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, and of another copy and its factors if swept, else of one matrix's factors."""
        m, n = x.shape[-2:]
        k = min(m, n)
        count = min(matrices_per_chunk(x.shape), math.prod(x.shape[:-2]))
        return chunk_workspace(
            x, m * n + (max(m * n, (m + n) * k) + 3 * m if _is_swept((count, m, n)) else 0), 3 * m * n + 2 * m
        )


def _product_cotangent(lower: Value, upper: Value, l_cotangent: Value | None, u_cotangent: Value | None) -> Value:
    """Compute the cotangent of l u from those of l and u, at least one of which is given.

    With k = min(m, n), the square blocks l₁ u₁ follow the rule for square matrices, after the cotangents of the
    remaining rows of l or columns of u are moved into it.
    """
    k, (m, n) = lower.shape[-1], (lower.shape[-2], upper.shape[-1])
    l_cotangent = lower.full_like(0.0) if l_cotangent is None else l_cotangent
    u_cotangent = upper.full_like(0.0) if u_cotangent is None else u_cotangent
    top, right = _rows(lower, 0, k), _columns(upper, 0, k)
    below = adjoint(top) @ _rows(l_cotangent, 0, k)
    above = _columns(u_cotangent, 0, k) @ adjoint(right)
    if n > k:
        below = below - _columns(u_cotangent, k, n) @ adjoint(_columns(upper, k, n))
    if m > k:
        above = above - adjoint(_rows(lower, k, m)) @ _rows(l_cotangent, k, m)
    square = _divide_by_upper(below.tril(offset=-1) + above.triu(), right)
    if m > k:
        square = _solve_lower(top, square)
        return square.cat(_divide_by_upper(_rows(l_cotangent, k, m), right), axis=square.ndim - 2)
    combined = square.cat(_columns(u_cotangent, k, n), axis=square.ndim - 1) if n > k else square
    return _solve_lower(top, combined)


def _solve_lower(lower: Value, x: Value) -> Value:
    """Compute l⁻ᴴ x."""
    return conjugate(lower).triangular_solve(x, transpose=True)


def _divide_by_upper(x: Value, upper: Value) -> Value:
    """Compute x u⁻ᴴ."""
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
    """Factor one matrix after another, as CuPy has no batched LU; many small ones together."""
    if _is_swept(x.shape):
        _sweep(run, x, lower, upper, rows)
        return
    from cupyx.scipy.linalg import lu_factor  # noqa: PLC0415 - optional

    for i in run.checked(range(len(x))):
        factors, pivots = lu_factor(x[i], check_finite=False)
        _unpack(run, factors, pivots.get(), (lower[i], upper[i], rows[i]))


@_factor.on("cpu")
def _factor_on_cpu(run: RunContext, x: HostArray, lower: HostArray, upper: HostArray, rows: HostArray) -> None:
    """Factor one matrix after another, as NumPy has no LU; many small ones together."""
    if _is_swept(x.shape):
        _sweep(run, x, lower, upper, rows)
        return
    from scipy.linalg import lapack  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    getrf = lapack.zgetrf if x.dtype.kind == "c" else lapack.dgetrf
    for i in run.checked(range(len(x))):
        factors, pivots, _ = getrf(x[i])
        _unpack(run, factors, pivots, (lower[i], upper[i], rows[i]))


def _is_swept(shape: Shape) -> bool:
    """Whether a chunk of this shape is faster column by column over all matrices than with a call each."""
    count, *extents = shape
    return min(extents) <= min(_MOST_COLUMNS, count)


def _unpack(run: RunContext, factors: Array, pivots: HostArray, results: Sequence[Array]) -> None:
    """Unpack the result of getrf: l without its diagonal, u, and the successive row exchanges."""
    (lower, upper, rows), xp = results, run.xp
    k = min(factors.shape)
    order = np.arange(len(factors))
    for i, partner in enumerate(pivots):
        order[i], order[partner] = order[partner], order[i]
    rows[...] = xp.asarray(order)
    _split(xp, factors, lower, upper, k)


def _pivot_size(xp: Namespace, x: Array) -> Array:
    """Return the magnitude by which LAPACK chooses a pivot: for a complex number, |Re| + |Im|."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else xp.abs(x)


def _split(xp: Namespace, factors: Array, lower: Array, upper: Array, k: int) -> None:
    lower[...] = xp.tril(factors[..., :k], -1)
    lower[..., xp.arange(k), xp.arange(k)] = 1
    upper[...] = xp.triu(factors[..., :k, :])


def _sweep(run: RunContext, x: Array, lower: Array, upper: Array, rows: Array) -> None:
    """Factor column by column over all matrices at once, in place in x."""
    xp, (count, m, n) = run.xp, x.shape
    k, batch_index = min(m, n), run.xp.arange(count)
    order = xp.tile(xp.arange(m), (count, 1))
    for j in range(k):
        largest = _pivot_size(xp, x[:, j:, j]).argmax(axis=1) + j
        for a in (x, order):
            pivot_rows = a[batch_index, largest]
            a[batch_index, largest] = a[:, j]
            a[:, j] = pivot_rows
        pivot = x[:, j, j]
        multipliers = x[:, j + 1 :, j]
        # a zero pivot has only zeros below it: dividing them by 1 leaves them 0
        multipliers /= xp.where(pivot == 0, 1, pivot)[:, None]
        x[:, j + 1 :, j + 1 :] -= multipliers[:, :, None] * x[:, j, None, j + 1 :]
    rows[...] = order
    _split(xp, x, lower, upper, k)


class Cofactors(Op):
    """y = det(x) x⁻ᵀ, the matrix of cofactors: each entry is the signed minor without its row and column, ∂ det x / ∂x.

    From x = u diag(s) vᴴ it is the conjugate of u diag(Π of the other s) vᴴ, times det(u) det(vᴴ), which needs no
    inverse.
    """

    name = "cofactors"
    internal = True
    is_captured = False
    operands = ("x",)
    dtypes = DTYPES
    gradient = "the derivative of y along g; if x is invertible, that is (Σ(g ∘ y) y − y gᵀ y) / det x"

    def infer(self, x: TensorType) -> ResultTypes:
        """Return the type of x."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Compute the cofactors from singular values and vectors."""
        if out.size:
            for (matrices,), (y,) in chunks(run, [x], [out]):
                u, s, vh = factorize(run, "svd", matrices)
                signs = run.xp.linalg.det(u) * run.xp.linalg.det(vh)
                others = _products_of_others(run.xp, s) * signs[:, None]
                y[...] = (u.conj() * others[:, None, :]) @ vh.conj()

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Return the derivative along g: the second derivative of det x is symmetric."""
        return (conjugate(_cofactor_slope(x, conjugate(g))),)

    def batch(self, mapped: Sequence[bool], x: Value) -> Value:
        """Return the op itself: N is one more batch axis."""
        return cofactors(x)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the cofactors with the determinant and the inverse."""
        (x,) = operands
        return [x.det().reshape(shape=(*x.shape[:-2], 1, 1)) * x.inv().transpose()]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 25 n³ for singular values and vectors, plus two determinants and a product."""
        return real_flops(types[0], 29 * types[0].size * types[0].shape[-1])

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, vectors, two products and a determinant's scratch, and LAPACK's."""
        n = types[0].shape[-1]
        return chunk_workspace(types[0], 5 * n * n + 5 * n, n * n) + lapack_bytes("svd", types[0])


class CofactorSlope(Op):
    """y = the derivative of the cofactors of x along e, which is exact for singular x, too.

    For x = diag(s), with Pᵢⱼ the product of all s but sᵢ and sⱼ, yᵢᵢ = Σⱼ Pᵢⱼ eⱼⱼ and yᵢⱼ = −Pᵢⱼ eⱼᵢ, j ≠ i: a minor of
    diag(s) + t e, to first order in t. For x = u diag(s) vᴴ, the cofactors of a product are the products of cofactors.
    Its own derivative divides by det x, and is NaN or infinite for a singular x.
    """

    name = "cofactor_slope"
    internal = True
    is_captured = False
    operands = ("x", "e")
    dtypes = DTYPES
    gradient = "dx by (Σ(e ∘ z) z − z eᵀ z) / det x with z the cofactors, de = the derivative of the cofactors along g"

    def infer(self, *types: TensorType) -> ResultTypes:
        """Return the type of x, or of e if that is complex."""
        return types[0].with_dtype(promote(*(t.dtype for t in types)))

    def forward(self, run: RunContext, x: Array, e: Array, *, out: Array) -> None:
        """Compute the derivative from singular values and vectors."""
        if out.size:
            xp = run.xp
            for (matrices, along), (y,) in chunks(run, [x, e], [out]):
                u, s, vh = factorize(run, "svd", matrices)
                turned = u.conj().swapaxes(-1, -2) @ along @ vh.conj().swapaxes(-1, -2)
                products = _products_without_pairs(xp, s)
                middle = -products * turned.swapaxes(-1, -2)
                n = xp.arange(s.shape[-1])
                middle[:, n, n] = (products * turned[:, None, n, n]).sum(axis=-1)
                signs = (xp.linalg.det(u) * xp.linalg.det(vh))[:, None, None]
                y[...] = signs * (u.conj() @ middle @ vh.conj())

    def vjp(self, g: Value, y: Value, x: Value, e: Value) -> Sequence[Value | None]:
        """Differentiate the form with z and det x, whose derivatives are z again and this op."""
        g, last = conjugate(g), (x.ndim - 2, x.ndim - 1)
        z, det = cofactors(x), x.det().reshape(shape=(*x.shape[:-2], 1, 1))
        along_e, along_g = ((each * z).sum(axes=last, keepdims=True) for each in (e, g))
        crossed = (g * (z @ e.transpose() @ z)).sum(axes=last, keepdims=True)
        from_z = along_g * e + along_e * g - g @ z.transpose() @ e - e @ z.transpose() @ g
        from_det = (along_e * along_g - crossed) / det / det
        return (
            conjugate(_cofactor_slope(x, from_z / det) - from_det * z),
            conjugate(_cofactor_slope(x, g)),
        )

    def batch(self, mapped: Sequence[bool], *xs: Value) -> Value:
        """Return the op itself: N is one more batch axis."""
        shape = next(x.shape for x, is_mapped in zip(xs, mapped, strict=True) if is_mapped)
        x, e = (x if is_mapped else x.broadcast_to(shape=shape) for x, is_mapped in zip(xs, mapped, strict=True))
        return _cofactor_slope(x, e)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the derivative with the determinant and the inverse."""
        x, e = operands
        inverse = x.inv().transpose()
        total = (e * inverse).sum(axes=(x.ndim - 2, x.ndim - 1), keepdims=True)
        return [x.det().reshape(shape=total.shape) * (total * inverse - inverse @ e.transpose() @ inverse)]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 25 n³ for singular values and vectors, plus two determinants and four products."""
        return real_flops(types[0], 36 * types[0].size * types[0].shape[-1])

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of copies, vectors, products and a determinant's scratch, and LAPACK's."""
        n = types[0].shape[-1]
        return chunk_workspace(types[0], 9 * n * n + 5 * n, n * n) + lapack_bytes("svd", types[0])


def _products_without_pairs(xp: Namespace, s: Array) -> Array:
    """Compute, for each pair of entries along the last axis, the product of all others; 0 for an entry with itself."""
    count, n = s.shape
    before = xp.ones((count, n + 1), s.dtype)
    before[:, 1:] = xp.cumprod(s, axis=-1)
    after = xp.ones((count, n + 1), s.dtype)
    after[:, :-1] = xp.cumprod(s[:, ::-1], axis=-1)[:, ::-1]
    products = xp.zeros((count, n, n), s.dtype)
    for i in range(n - 1):
        between = xp.ones((count, n - 1 - i), s.dtype)
        between[:, 1:] = xp.cumprod(s[:, i + 1 : n - 1], axis=-1)
        products[:, i, i + 1 :] = products[:, i + 1 :, i] = before[:, i, None] * between * after[:, i + 2 :]
    return products


def _products_of_others(xp: Namespace, s: Array) -> Array:
    """Compute, for each entry along the last axis, the product of all others, without division."""
    before, after = xp.ones_like(s), xp.ones_like(s)
    before[:, 1:] = xp.cumprod(s[:, :-1], axis=-1)
    after[:, :-1] = xp.cumprod(s[:, :0:-1], axis=-1)[:, ::-1]
    return before * after


_COFACTORS: Final = Cofactors()
_COFACTOR_SLOPE: Final = CofactorSlope()


def cofactors(x: Value) -> Value:
    """Append the matrix of cofactors."""
    return x.builder.emit(_COFACTORS, (x,), NONE)


def _cofactor_slope(x: Value, e: Value) -> Value:
    return x.builder.emit(_COFACTOR_SLOPE, (x, e), NONE)


class Det(Decomposition):
    """y = det x of square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 for an empty matrix.

    If the determinant may overflow or underflow, use `slogdet`. The first two derivatives are exact for singular
    matrices, too; their third ones are NaN or infinite. A matrix with NaN gives NaN; the other matrices of the batch
    are unaffected. Integers give float64; float16 is computed in a wider float and rounded once. PyTorch, JAX and
    NumPy: `linalg.det`.
    """

    name = "det"
    section = "det"
    gradient = "g · the conjugate cofactors of x; if x is invertible, those are the conjugate of det(x) x⁻ᵀ"
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
        """Return the type [...]. Raises ShapeMismatch."""
        matrices = square(x)
        return matrices.with_shape(matrices.shape[:-2])

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Run LAPACK's getrf."""
        if not x.size:
            out.fill(1)
            return
        for (matrices,), (y,) in chunks(run, [x], [out]):
            y[...] = run.xp.linalg.det(matrices)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Apply Jacobi's formula."""
        if not x.type.size:
            return (empty_gradient(x, [g]),)
        return (conjugate(cofactors(upcast(x))) * upcast(g).reshape(shape=(*g.shape, 1, 1)),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 2 n³ / 3 for each matrix."""
        return real_flops(types[0], 2 * types[0].size * types[0].shape[-1] // 3)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, the results, and LAPACK's copy."""
        n = x.shape[-1]
        return chunk_workspace(x, n * n + 1, n * n)


class SLogDet(SquareMatrix):
    """sign, log|det x| of matrices on the last two axes: [batch…, n, n] → [batch…] for both; det x = sign · exp(log).

    The logarithm does not overflow or underflow where the determinant does. A singular matrix has sign 0 and logarithm
    −∞, and its gradient is NaN, as is that of the inverse; the other matrices of the batch are unaffected. The sign has
    no gradient. For a complex matrix, the sign is complex, det x / |det x|, and the logarithm is real. Integers give
    float64; float16 is computed in a wider float and rounded once.
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
        """Return x's type without its last two axes, then with the real dtype. Raises ShapeMismatch."""
        result = square(x).with_shape(x.shape[:-2])
        return result, result.with_dtype(real_dtype(result.dtype))

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, ...]) -> None:
        """Run LAPACK's getrf."""
        xp = run.xp
        results = xp.linalg.slogdet(xp.asarray(x, dtype=compute_dtype(run, out[0])))
        for y, result in zip(out, results, strict=True):
            y[...] = result

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value) -> Sequence[Value | None]:
        """Apply Jacobi's formula."""
        log_cotangent = g[1]
        if log_cotangent is None:
            return (None,)
        return (adjoint(upcast(x).inv()) * log_cotangent.reshape(shape=(*log_cotangent.shape, 1, 1)),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """Return 2 n³ / 3 for each matrix."""
        return 2 * types[0].size * types[0].shape[-1] // 3
