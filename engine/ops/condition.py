"""Condition and rank of a matrix, by its singular values."""

from __future__ import annotations

from engine.graph.dtypes import DTYPES, real_dtype
from engine.graph.ir import Value
from engine.graph.op import Composite, NoGradient, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import INT64, TensorType, to_average
from engine.graph.truth import Truth
from engine.oplib.decomposition import matrix_type, real_like
from engine.oplib.operands import wrong_shape
from engine.oplib.widening import wide
from engine.ops.pinv import rank_tolerance


def _singular_values(x: Value) -> Value:
    """[..., k], of float16 in float32."""
    return wide(x).svd().output(1)


class CondNumber(Composite):
    """y = s₀ / sₖ₋₁, the condition in the 2-norm: the largest over the smallest singular value.

    x [batch…, m, n], y [batch…]. Infinite for a matrix of lower rank, as far as rounding leaves a 0; NaN for one of
    zeros, or that holds an infinity or NaN. Integers give float64; float16 is computed in float32, and rounded once.
    PyTorch's, JAX's and NumPy's `linalg.cond` with p absent.
    """

    name = "cond_number"
    section = "condition"
    operands = ("x",)
    dtypes = DTYPES
    since = 2
    gradient = "that of svd, whose vectors are those of s₀ and sₖ₋₁: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁)"
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
        """[...]. Raises ShapeMismatch for matrices without entries."""
        x = matrix_type(x)
        if not min(x.shape[-2:]):
            raise wrong_shape(0, "x", "matrices that have entries", x)
        return real_like(x.with_shape(x.shape[:-2]))

    def compose(self, x: Value) -> Value:
        """The first over the last."""
        s = _singular_values(x)
        y = s.select(index=0, axis=s.ndim - 1) / s.select(index=s.shape[-1] - 1, axis=s.ndim - 1)
        dtype = real_dtype(to_average(x.dtype))
        return y if y.dtype == dtype else y.cast(dtype=dtype)


class MatrixRank(Composite):
    """y = how many singular values are larger than max(m, n) ε times the largest: int64, [batch…, m, n] → [batch…].

    ε is that of x's dtype. A matrix that holds an infinity or NaN has rank 0. PyTorch's, JAX's and NumPy's
    `linalg.matrix_rank` without a tolerance.
    """

    name = "matrix_rank"
    section = "condition"
    operands = ("x",)
    dtypes = DTYPES
    since = 2
    gradient = "none: a rank is a whole number"
    vjp = NoGradient("a rank is a whole number")
    samples = (
        Sample(Real(3, 3)),
        Sample(Real(2, 3, 2)),
        Sample(Real(0, 3)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(operands=[[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]], value=1, source="by hand"),
        Truth(operands=[[[1.0, 2.0, 0.0], [2.0, 5.0, 0.0]]], value=2, source="by hand"),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """[...] in int64. Raises ShapeMismatch."""
        return TensorType(matrix_type(x).shape[:-2], INT64)

    def compose(self, x: Value) -> Value:
        """Compared with the first."""
        if not min(x.shape[-2:]):
            return x.builder.full(x.shape[:-2], 0, INT64)
        s = _singular_values(x)
        part = rank_tolerance(x.shape, to_average(x.dtype))
        return (s > s.max(axes=(s.ndim - 1,), keepdims=True) * part).sum(axes=(s.ndim - 1,))
