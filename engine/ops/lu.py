"""The LU decomposition, and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import INT64, HostArray, Shape, TensorType
from engine.graph.truth import Truth
from engine.oplib.conjugates import adjoint, conjugate
from engine.oplib.decomposition import Decomposition, chunk_workspace, matrix_type, operations
from engine.oplib.factors import admit, at_once, chunks
from engine.oplib.spectrum import column, of_nothing
from engine.oplib.widening import wide

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
        """Of the square part and of what is beside it, and then each row where it came from."""
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
    """What getrf gives, apart: l without its diagonal, u, and with which row each was exchanged in turn."""
    (lower, upper, rows), xp = results, run.xp
    k = min(factors.shape)
    order = np.arange(len(factors))
    for i, other in enumerate(exchanges):
        order[i], order[other] = order[other], order[i]
    rows[...] = xp.asarray(order)
    _split(xp, factors, lower, upper, k)


def _size(xp: Namespace, x: Array) -> Array:
    """What LAPACK chooses a pivot by: of a complex number, the sum of its parts."""
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
