"""The Cholesky decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.by_device import DeviceMethod
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib.conjugates import adjoint, conjugate
from engine.oplib.lapack import factor_each, factor_each_bytes, is_for_lapack
from engine.oplib.matrices import SquareMatrix, answer_each, computed
from engine.oplib.widening import widened


class Cholesky(SquareMatrix):
    """y lower triangular, its diagonal positive, with y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.

    x is made symmetric (Hermitian) first, as in JAX: so the gradient is symmetric, and holds along every direction.
    A matrix that is not positive definite gives a matrix of NaN; the others of its batch are as if it were not there.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
    """

    name = "cholesky"
    section = "cholesky"
    is_captured = False
    operands = ("x",)
    dtypes = DTYPES
    gradient = "(s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle, half the diagonal"
    samples = (
        Sample(Real(3, 3, low=-1, high=1, diagonal=4)),
        Sample(Real(2, 2, 2, low=-1, high=1, diagonal=4)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )

    @DeviceMethod
    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """LAPACK's potrf, on the symmetric part."""
        dtype = computed(run, out)
        even = out if dtype == out.dtype else run.xp.empty(out.shape, dtype)
        run.xp.add(x, x.swapaxes(-1, -2).conj(), out=even, dtype=dtype)
        even *= 0.5
        answer_each(run, "cholesky", even, out=out)

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Large matrices one by one, as they lie."""
        if is_for_lapack(x.shape):
            factor_each(run, x, out)
        else:
            Cholesky.forward.general(self, run, x, out=out)

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """By triangular systems, and no inverse."""
        y, _ = widened(self, y, (x,), {})
        product = adjoint(y) @ (g * 0.5)
        inner = product.tril() + product.tril(offset=-1)
        turned = conjugate(y)
        half = turned.triangular_solve(inner, transpose=True)
        outer = turned.triangular_solve(adjoint(half), transpose=True) * 0.5
        return (outer + adjoint(outer),)

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """n³ / 3 for each matrix."""
        return types[0].size * types[0].shape[-1] // 3

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """One matrix at a time, where these are large."""
        return factor_each_bytes(x) if is_for_lapack(x.shape) else super().workspace(out, x)
