"""Pseudoinverse, least squares, condition number and rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value, adjoint
from engine.ir.op import Array, Composite, NoGradient, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, DType, TensorType, mean_dtype, promote, real_dtype
from engine.ops.common.numerics import upcast, upcast_operands, wrong_shape
from engine.ops.linalg.lapack import lapack_bytes
from engine.ops.linalg.matmul import product_type
from engine.ops.linalg.matrices import (
    Decomposition,
    chunk_workspace,
    chunks,
    empty_gradient,
    factorize,
    matrix_type,
    real_flops,
    real_like,
)

_RCOND = "singular values up to this fraction of the largest count as 0; default: "


def _check_rcond(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return `attrs`. Raises BadAttribute if rcond is negative or NaN."""
    rcond = attrs["rcond"]
    if rcond is not None and not rcond >= 0:
        received = f"{rcond:g}"
        raise BadAttribute(
            f"attribute rcond must be at least 0, but is {received}",
            attribute="rcond",
            expected="at least 0",
            got=received,
        )
    return attrs


def rank_tolerance(shape: Sequence[int], dtype: DType) -> float:
    """Return max(m, n) ε: the fraction of the largest singular value up to which singular values count as 0."""
    return max(shape[-2:]) * float(np.finfo(dtype).eps)


class PInv(Decomposition):
    """y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that are 0.

    x [batch…, m, n], y [batch…, n, m]. Singular values up to `rcond` times the largest count as 0; the default is
    max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even with equal singular
    values. If larger values are cut off, its relative error is their ratio to the values that remain. Where the rank
    changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN, or for which LAPACK does not
    converge, gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a
    wider float and rounded once.

    PyTorch: `linalg.pinv` (with rtol). JAX and NumPy: `linalg.pinv`, with other defaults. G. H. Golub, V. Pereyra, The
    differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate (1973), eq. 4.12.
    """

    name = "pinv"
    section = "pinv"
    attrs: ClassVar[Mapping[str, Attr]] = {"rcond": Attr("float", None, _RCOND + "max(m, n) ε")}
    gradient = "−yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x)"
    samples = (
        Sample(Real(4, 2, diagonal=3)),
        Sample(Real(2, 2, 3, diagonal=3)),
        Sample(Real(3, 3, diagonal=4), rcond=1e-3),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 2)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[1.0], [2.0]]],
            value=[[0.2, 0.4]],
            cotangent=[[1.0, 10.0]],
            gradients=[[[-1.48], [-1.36]]],
            source="by hand: xᵀ / |x|²",
        ),
        Truth(
            operands=[[[2.0, 0.0], [0.0, 0.0]]],
            value=[[0.5, 0.0], [0.0, 0.0]],
            cotangent=[[1.0, 3.0], [5.0, 7.0]],
            gradients=[[[-0.25, 1.25], [0.75, 0.0]]],
            source="by hand: at rank 1, [[a, b], [c, b c / a]]⁺ to first order",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check rcond. Raises BadAttribute."""
        return _check_rcond(attrs)

    def infer(self, x: TensorType, *, rcond: float | None) -> ResultTypes:
        """Return the type [..., n, m]. Raises ShapeMismatch."""
        x = matrix_type(x)
        return x.with_shape((*x.shape[:-2], x.shape[-1], x.shape[-2]))

    def forward(self, run: RunContext, x: Array, *, out: Array, rcond: float | None) -> None:
        """Run LAPACK's gesdd, and multiply."""
        fraction = rank_tolerance(x.shape, out.dtype) if rcond is None else rcond
        if out.size:
            for (matrices,), (y,) in chunks(run, [x], [out]):
                u, s, vh = factorize(run, "svd", matrices)
                is_kept = ~(s <= fraction * s[:, :1])
                inverse = run.xp.where(is_kept, 1 / run.xp.where(is_kept, s, 1), 0)
                y[...] = vh.swapaxes(-1, -2).conj() @ (inverse[..., None] * u.swapaxes(-1, -2).conj())

    def vjp(self, g: Value, y: Value, x: Value, *, rcond: float | None) -> Sequence[Value | None]:
        """Sum the terms in the row and column space of x, and in the complement on either side."""
        if not x.type.size:
            return (empty_gradient(x, [g]),)
        y, x = upcast_operands(self, y, (x,), {"rcond": rcond})
        y_adjoint, g_adjoint = adjoint(y), adjoint(upcast(g))
        inside = y_adjoint @ adjoint(g_adjoint) @ y_adjoint
        left = (g_adjoint - x @ (y @ g_adjoint)) @ (y @ y_adjoint)
        right = (y_adjoint @ y) @ (g_adjoint - (g_adjoint @ y) @ x)
        return (left + right - inside,)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 4 m n k + 21 k³ for the decomposition of each matrix, plus a product."""
        *lead, m, n = types[0].shape
        k = min(m, n)
        return real_flops(types[0], math.prod(lead) * (6 * m * n * k + 21 * k**3))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, its factors, a scaled factor, their product, and LAPACK's."""
        m, n = x.shape[-2:]
        k = min(m, n)
        return chunk_workspace(x, 2 * m * n + (2 * m + n) * k + 4 * k) + lapack_bytes("svd", x)


class LstSq(Composite):
    """y that minimises |a y − b|: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].

    y [n], [batch…, n] or [batch…, n, k]. b holds vectors if it is 1-d, or if it has a's shape without the last axis and
    its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without `rcond`, y is computed by `qr`,
    and the columns of a must be independent. With `rcond`, y is computed by `pinv`: singular values up to that fraction
    of the largest count as 0, and y is the solution of least norm. Integers give float64; float16 is computed in
    float32 and rounded once. PyTorch, JAX and NumPy: the first result of `linalg.lstsq`.
    """

    name = "lstsq"
    section = "pinv"
    operands = ("a", "b")
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {
        "rcond": Attr("float", None, _RCOND + "none, and the columns must be independent")
    }
    since = 2
    gradient = "that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ"
    samples = (
        Sample(Real(4, 2, diagonal=3), Real(4)),
        Sample(Real(2, 3, 2, diagonal=3), Real(2, 3)),
        Sample(Real(2, 3, 2, diagonal=3), Real(3, 2)),
        Sample(Real(3, 2, diagonal=3), Real(2, 3, 1), rcond=1e-6),
        Sample(Real(3, 3, diagonal=4), Real(3)),
        Sample(Real(2, 0), Real(2, 2)),
    )
    truths = (
        Truth(
            operands=[[[1.0], [2.0]], [3.0, 4.0]],
            value=[2.2],
            gradients=[[[-0.28], [-0.96]], [0.2, 0.4]],
            source="by hand: a·b / |a|²",
        ),
        Truth(
            operands=[[[1.0], [2.0]], [[3.0], [4.0]]],
            attrs={"rcond": 0.1},
            value=[[2.2]],
            gradients=[[[-0.28], [-0.96]], [[0.2], [0.4]]],
            source="by hand: a·b / |a|²",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check rcond. Raises BadAttribute."""
        return _check_rcond(attrs)

    def infer(self, a: TensorType, b: TensorType, *, rcond: float | None) -> ResultTypes:
        """Return the type of the product a⁻¹ b. Raises ShapeMismatch."""
        m, n = matrix_type(a, 0, "a").shape[-2:]
        if m < n:
            raise wrong_shape(0, "a", "at least as many rows as columns", a)
        dtype = promote(mean_dtype(a.dtype), mean_dtype(b.dtype))
        if _pairs_vectors(a, b):
            return TensorType((*a.shape[:-2], n), dtype)
        if b.ndim == 0 or b.shape[max(b.ndim - 2, 0)] != m:
            raise wrong_shape(1, "b", f"vectors or columns of {m} entries, as operand 0 (a) has {m} rows", b)
        inverse_type = TensorType((*a.shape[:-2], n, m), dtype)
        return product_type(inverse_type, b.with_dtype(dtype))

    def compose(self, a: Value, b: Value, *, rcond: float | None) -> Value:
        """Turn vectors into columns, then solve with qr, or with pinv if `rcond` is given."""
        if b.ndim == 1 or _pairs_vectors(a.type, b.type):
            y = a.lstsq(b.reshape(shape=(*b.shape, 1)), rcond=rcond)
            return y.reshape(shape=y.shape[:-1])
        dtype = promote(mean_dtype(a.dtype), mean_dtype(b.dtype))
        left, right = (upcast(x if x.type.is_differentiable else x.cast(dtype=mean_dtype(x.dtype))) for x in (a, b))
        if rcond is not None:
            y = left.pinv(rcond=rcond) @ right
        else:
            factors = left.qr()
            y = factors.output(1).triangular_solve(adjoint(factors.output(0)) @ right, lower=False)
        return y if y.dtype == dtype else y.cast(dtype=dtype)


def _pairs_vectors(a: TensorType, b: TensorType) -> bool:
    """Whether b [..., m] holds one vector per matrix: only if it cannot be matrices [..., m, k]."""
    return b.ndim > 1 and b.shape == a.shape[:-1] and b.shape[-2] != a.shape[-2]


def _singular_values(x: Value) -> Value:
    """Append the singular values [..., k]; those of float16 in float32."""
    return upcast(x).svd().output(1)


class CondNumber(Composite):
    """y = s₀ / sₖ₋₁, the condition number in the 2-norm: the largest singular value over the smallest.

    x [batch…, m, n], y [batch…]. A rank-deficient matrix gives infinity if rounding leaves an exact 0. A zero matrix,
    or one with an infinity or NaN, gives NaN. Integers give float64; float16 is computed in float32 and rounded once.
    PyTorch, JAX and NumPy: `linalg.cond` without p.
    """

    name = "cond_number"
    section = "condition"
    operands = ("x",)
    dtypes = DTYPES
    since = 2
    gradient = "g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁), with the singular vectors of s₀ and sₖ₋₁"
    samples = (
        Sample(Real(3, 3, diagonal=4)),
        Sample(Real(2, 3, 2, diagonal=3)),
        Sample(Real(2, 3, diagonal=3)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[0.0, 2.0], [-6.0, 0.0]]],
            value=3.0,
            gradients=[[[0.0, -1.5], [-0.5, 0.0]]],
            source="by hand: −x₂₁ / x₁₂",
        ),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """Return the type [...]. Raises ShapeMismatch for matrices without entries."""
        x = matrix_type(x)
        if not min(x.shape[-2:]):
            raise wrong_shape(0, "x", "matrices with at least one entry", x)
        return real_like(x.with_shape(x.shape[:-2]))

    def compose(self, x: Value) -> Value:
        """Divide the first singular value by the last."""
        s = _singular_values(x)
        y = s.select(index=0, axis=s.ndim - 1) / s.select(index=s.shape[-1] - 1, axis=s.ndim - 1)
        dtype = real_dtype(mean_dtype(x.dtype))
        return y if y.dtype == dtype else y.cast(dtype=dtype)


class MatrixRank(Composite):
    """y = the number of singular values larger than max(m, n) ε times the largest: int64, [batch…, m, n] → [batch…].

    ε is that of x's dtype. A matrix with an infinity or NaN has rank 0. PyTorch, JAX and NumPy: `linalg.matrix_rank`
    without a tolerance.
    """

    name = "matrix_rank"
    section = "condition"
    operands = ("x",)
    dtypes = DTYPES
    since = 2
    gradient = "none: a rank is a whole number"
    vjp = NoGradient("a rank is a whole number")
    samples = (Sample(Real(3, 3)), Sample(Real(2, 3, 2)), Sample(Real(0, 3)), Sample(Real(0, 2, 2)))
    truths = (
        Truth(operands=[[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]], value=1, source="by hand"),
        Truth(operands=[[[1.0, 2.0, 0.0], [2.0, 5.0, 0.0]]], value=2, source="by hand"),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """Return the type [...] in int64. Raises ShapeMismatch."""
        return TensorType(matrix_type(x).shape[:-2], INT64)

    def compose(self, x: Value) -> Value:
        """Compare the singular values with the first."""
        if not min(x.shape[-2:]):
            return x.builder.full(x.shape[:-2], 0, INT64)
        s = _singular_values(x)
        fraction = rank_tolerance(x.shape, mean_dtype(x.dtype))
        return (s > s.max(axes=(s.ndim - 1,), keepdims=True) * fraction).sum(axes=(s.ndim - 1,))
