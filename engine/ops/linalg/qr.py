"""QR decomposition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.ir.errors import NotDifferentiable
from engine.ir.graph import Value, adjoint
from engine.ir.op import Array, ResultTypes
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import TensorType, show_shape
from engine.ops.common.numerics import upcast
from engine.ops.linalg.lapack import is_for_lapack, lapack_bytes, qr_each, qr_each_bytes
from engine.ops.linalg.matrices import (
    Decomposition,
    chunk_workspace,
    chunks,
    empty_gradient,
    factorize,
    hermitian_part,
    matrix_type,
    real_flops,
)


class QR(Decomposition):
    """q, r with x = q r: the columns of q are orthonormal, r is upper triangular; reduced form.

    x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). LAPACK chooses the signs of r's diagonal; each
    sign flips a row of r together with the column of q. Use q and r only in functions that do not depend on these
    signs. The gradient is valid if the columns of x are independent; otherwise it is infinite or NaN. With fewer rows
    than columns, there are values but no gradient: `not_differentiable`. A matrix with an infinity or NaN gives NaN;
    the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and
    rounded once.

    PyTorch and JAX: `linalg.qr`, reduced. S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra
    functions with application in optimum experimental design, arXiv:1001.1654 (2010).
    """

    name = "qr"
    section = "qr"
    several = True
    gradient = "(ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none if rows < columns"
    samples = (
        Sample(Real(3, 3, diagonal=4)),
        Sample(Real(2, 4, 2, diagonal=3)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(2, 0)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[3.0, 1.0], [4.0, 2.0]]],
            value=([[-0.6, -0.8], [-0.8, 0.6]], [[-5.0, -2.2], [0.0, 0.4]]),
            cotangent=([[1.0, 0.0], [0.0, 0.0]], [[10.0, 100.0], [0.0, 1000.0]]),
            gradients=[[[352.272, -860.0], [-276.704, 520.0]]],
            source="by hand: q₁ = −x₁ / |x₁|, r₁₁ = −|x₁|, r₁₂ = q₁·x₂, r₂₂ = det x / |x₁|",
        ),
    )

    def infer(self, x: TensorType) -> ResultTypes:
        """Return the types [..., m, k] and [..., k, n]. Raises ShapeMismatch."""
        x = matrix_type(x)
        *lead, m, n = x.shape
        return x.with_shape((*lead, m, min(m, n))), x.with_shape((*lead, min(m, n), n))

    @DeviceMethod
    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array]) -> None:
        """Run LAPACK's geqrf and orgqr."""
        if out[1].size:
            for (chunk,), results in chunks(run, [x], out):
                for y, factor in zip(results, factorize(run, "qr", chunk), strict=True):
                    y[...] = factor

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, x: Array, *, out: Sequence[Array]) -> None:
        """Factor large matrices with a single copy."""
        if is_for_lapack(x.shape):
            qr_each(run, x, *out)
        else:
            QR.forward.general(self, run, x, out=out)

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value) -> Sequence[Value | None]:
        """Solve a triangular system. Raises NotDifferentiable if rows < columns."""
        m, n = x.shape[-2:]
        if m < n:
            expected, received = "at least as many rows as columns", show_shape(x.shape)
            raise NotDifferentiable(
                f"operand 0 (x) must have {expected} for qr to have a gradient, but has shape {received}",
                operand=0,
                expected=expected,
                got=received,
            )
        if not x.type.size:
            return (empty_gradient(x, g),)
        if upcast(x) is not x:
            y = upcast(x).qr()
        q, r = y.output(0), y.output(1)
        q_cotangent, r_cotangent = (None if cotangent is None else upcast(cotangent) for cotangent in g)
        inner = _inner_cotangent(q, r, q_cotangent, r_cotangent)
        if inner is None:
            return (None,)
        total = q @ inner if q_cotangent is None else q_cotangent + q @ inner
        return (adjoint(r.triangular_solve(adjoint(total), lower=False)),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 4 m n k − 4 k³ / 3 for each matrix, once for r and once for q."""
        *lead, m, n = types[0].shape
        k = min(m, n)
        return real_flops(types[0], math.prod(lead) * (4 * m * n * k - 4 * k**3 // 3))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, NumPy's copies of it, the results, and LAPACK's."""
        if is_for_lapack(x.shape):
            return qr_each_bytes(x) if x.size else 0
        m, n = x.shape[-2:]
        k = min(m, n)
        return chunk_workspace(x, 3 * m * n + (m + n) * k + k) + lapack_bytes("qr", x)


def _inner_cotangent(q: Value, r: Value, q_cotangent: Value | None, r_cotangent: Value | None) -> Value | None:
    """Return the Hermitian matrix with the lower triangle of r ḡrᴴ − ḡqᴴ q; None without either cotangent.

    Only the real part of its diagonal counts: LAPACK makes r's diagonal real, so that the phase of q's columns is
    fixed.
    """
    if q_cotangent is None and r_cotangent is None:
        return None
    if r_cotangent is None:
        assert q_cotangent is not None
        inner = -(adjoint(q_cotangent) @ q)
    else:
        inner = r @ adjoint(r_cotangent)
        inner = inner if q_cotangent is None else inner - adjoint(q_cotangent) @ q
    strictly_lower, lower = inner.tril(offset=-1), inner.tril()
    if not inner.type.is_complex:
        return lower + adjoint(strictly_lower)
    return strictly_lower + hermitian_part(lower - strictly_lower) + adjoint(strictly_lower)
