"""Functions of symmetric matrices, computed from their eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import REQUIRED, Attr
from engine.ir.graph import Value, adjoint
from engine.ir.op import Array, Namespace, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import REALS, TensorType
from engine.ops.common import batching
from engine.ops.common.numerics import upcast, upcast_operands
from engine.ops.linalg.lapack import lapack_bytes
from engine.ops.linalg.matrices import (
    Decomposition,
    chunk_workspace,
    chunks,
    column,
    factorize,
    hermitian_part,
    row,
    square,
    symmetric_part,
)
from engine.ops.linalg.matrix_exp import exponential_slope, slope_gradient

#: largest |a − b| / (a + b) at which the difference of logarithms is computed with artanh, which does not cancel
_SERIES_RANGE: Final = 0.5


class SymmetricSlope(Op):
    """y = v (D ∘ (vᵀ e v)) vᵀ, the derivative of a function at x = v diag(w) vᵀ along e.

    Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), or f′ if these are equal, in forms without cancellation: 1 / (√wᵢ + √wⱼ) for
    sqrt, and 2 artanh z / (z (wᵢ + wⱼ)), z = (wᵢ − wⱼ) / (wᵢ + wⱼ), for log. x, e and y are [batch…, n, n], x
    symmetric. Self-adjoint in e.

    N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein.
    """

    name = "symmetric_slope"
    internal = True
    is_captured = False
    operands = ("x", "e")
    attrs: ClassVar[Mapping[str, Attr]] = {"function": Attr("string", REQUIRED, "which", choices=("sqrt", "log"))}
    gradient: ClassVar[str] = "by e: itself along h; by x: that of the equation that it solves"

    def infer(self, x: TensorType, e: TensorType, *, function: str) -> ResultTypes:
        """Return the type of x."""
        return x

    def forward(self, run: RunContext, x: Array, e: Array, *, out: Array, function: str) -> None:
        """Compute the derivative from eigenvalues and vectors."""
        if out.size:
            for (points, directions), (y,) in chunks(run, [x, e], [out]):
                w, v = factorize(run, "eigh", symmetric_part(points))
                v_transpose = v.swapaxes(-1, -2)
                inner = v_transpose @ directions @ v
                inner *= _divided_differences(run.xp, w, function)
                y[...] = v @ inner @ v_transpose

    def vjp(self, h: Value, y: Value, x: Value, e: Value, *, function: str) -> Sequence[Value | None]:
        """Differentiate the equation that y solves, with r = f(x): r y + y r = e for sqrt, dexp(r)[y] = e for log.

        These follow from the inverse functions, the square and the exponential.
        """
        e_cotangent = symmetric_slope(x, h, function)
        if function == "sqrt":
            root_cotangent = e_cotangent @ adjoint(y) + adjoint(y) @ e_cotangent
        else:
            root_cotangent = slope_gradient(x.symmetric_function(function="log"), y, e_cotangent)
        return symmetric_slope(x, hermitian_part(-root_cotangent), function), e_cotangent

    def batch(self, mapped: Sequence[bool], x: Value, e: Value, *, function: str) -> Value:
        """Return the op itself: N is one more batch axis."""
        x, e = batching.expand(mapped, (x, e))
        return symmetric_slope(x, e, function)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the derivative with the results of `eigh`."""
        x, e = operands
        eigen = x.eigh()
        w, v = eigen.output(0), eigen.output(1)
        differences = _emit_divided_differences(w, attrs["function"])
        return [v @ (differences * (adjoint(v) @ e @ v)) @ adjoint(v)]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 9 n³ for eigenvectors, plus four products."""
        return 17 * types[0].size * types[0].shape[-1]

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of copies, vectors, divided differences, products, and LAPACK's."""
        x, n = types[0], types[0].shape[-1]
        return chunk_workspace(x, (13 if attrs["function"] == "log" else 9) * n * n + 2 * n) + lapack_bytes("eigh", x)


def _divided_differences(xp: Namespace, w: Array, function: str) -> Array:
    if function == "sqrt":
        root = xp.sqrt(w)
        return 1 / (root[..., :, None] + root[..., None, :])
    a, b = w[..., :, None], w[..., None, :]
    difference, total = a - b, a + b
    ratio = difference / total
    is_small = xp.abs(ratio) <= _SERIES_RANGE
    small = xp.where(is_small, ratio, 0)
    artanh_ratio = xp.where(small == 0, 1, xp.arctanh(small) / xp.where(small == 0, 1, small))
    logs = xp.log(w)
    large = (logs[..., :, None] - logs[..., None, :]) / xp.where(is_small, 1, difference)
    return xp.where(is_small, 2 * artanh_ratio / total, large)


def _emit_divided_differences(w: Value, function: str) -> Value:
    if function == "sqrt":
        root = w.sqrt()
        return (column(root) + row(root)).reciprocal()
    difference, total = column(w) - row(w), column(w) + row(w)
    ratio = difference / total
    is_small, is_same = ratio.abs() <= _SERIES_RANGE, difference.equal(difference * 0.0)
    small = is_same.where(_SERIES_RANGE, is_small.where(ratio, _SERIES_RANGE))
    logs = w.log()
    large = (column(logs) - row(logs)) / is_small.where(1.0, difference)
    return is_same.where(total.reciprocal() * 2.0, is_small.where(small.atanh() / small / total * 2.0, large))


_SLOPE: Final = SymmetricSlope()


def symmetric_slope(x: Value, e: Value, function: str) -> Value:
    """Append the derivative of sqrt or log at a symmetric x along e."""
    return x.builder.emit(_SLOPE, (x, e), {"function": function})


def function_slope(x: Value, y: Value, e: Value, function: str) -> Value:
    """Append the derivative of a function at a symmetric x along a symmetric e; y is its value at x."""
    if function == "exp":
        return exponential_slope(x, e)
    if function == "rsqrt":
        return symmetric_slope(x, -(y @ e @ y), "sqrt")
    return symmetric_slope(x, e, function)


class SymmetricFunction(Decomposition):
    """y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.

    f is applied to the eigenvalues: the square root, its reciprocal, the logarithm or the exponential. The gradient
    uses divided differences, which have a limit where eigenvalues meet. So it is exact at equal eigenvalues, and so is
    the second derivative; v f vᵀ written with `eigh` has no gradient there. A matrix gives NaN if f is not finite at an
    eigenvalue (such as log at 0 or below), if it contains an infinity or NaN, or if LAPACK does not converge; the other
    matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

    SciPy: `sqrtm`, `logm` and `expm` of symmetric matrices. PyTorch and JAX have no such function with a gradient at
    equal eigenvalues, except for exp. N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein.
    """

    name = "symmetric_function"
    section = "symmetric_function"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "function": Attr(
            "string",
            REQUIRED,
            "function of the eigenvalues; rsqrt is 1 / sqrt",
            choices=("sqrt", "rsqrt", "log", "exp"),
        )
    }
    dtypes = REALS
    gradient = "v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), or f′(wᵢ) if wᵢ = wⱼ"
    samples = (
        *(Sample(Real(3, 3, low=-1, high=1, diagonal=4), function=f) for f in ("sqrt", "rsqrt", "log", "exp")),
        Sample(Real(2, 2, 2, low=-1, high=1, diagonal=4), function="sqrt"),
        Sample(Real(1, 1, low=1), function="log"),
        Sample(Real(0, 0), function="exp"),
        Sample(Real(0, 2, 2), function="rsqrt"),
    )
    truths = (
        *(
            Truth(
                operands=[[[2.5, 1.5], [1.5, 2.5]]],
                attrs={"function": f},
                value=[[(low + high) / 2, (high - low) / 2], [(high - low) / 2, (low + high) / 2]],
                cotangent=[[1.0, 0.0], [0.0, -1.0]],
                gradients=[[[(high - low) / 3, 0.0], [0.0, (low - high) / 3]]],
                source="by hand: eigenvalues 1 and 4 along (1, −1) and (1, 1), between which g goes",
            )
            for f, low, high in (
                ("sqrt", 1.0, 2.0),
                ("rsqrt", 1.0, 0.5),
                ("log", 0.0, math.log(4.0)),
                ("exp", math.e, math.exp(4.0)),
            )
        ),
        *(
            Truth(
                operands=[[[4.0, 0.0], [0.0, 4.0]]],
                attrs={"function": f},
                value=[[y, 0.0], [0.0, y]],
                cotangent=[[1.0, 3.0], [5.0, 7.0]],
                gradients=[[[slope, 4 * slope], [4 * slope, 7 * slope]]],
                source="by hand: f′ everywhere",
            )
            for f, y, slope in (
                ("sqrt", 2.0, 0.25),
                ("rsqrt", 0.5, -0.0625),
                ("log", math.log(4.0), 0.25),
                ("exp", math.exp(4.0), math.exp(4.0)),
            )
        ),
    )

    def infer(self, x: TensorType, *, function: str) -> ResultTypes:
        """Return the type of x; float64 unless x is float. Raises ShapeMismatch."""
        return square(x)

    def forward(self, run: RunContext, x: Array, *, out: Array, function: str) -> None:
        """Run LAPACK's syevd, and multiply. An eigenvalue at which f is not finite gives NaN."""
        xp = run.xp
        if out.size:
            for (chunk,), (y,) in chunks(run, [x], [out]):
                w, v = factorize(run, "eigh", symmetric_part(chunk))
                values = 1 / xp.sqrt(w) if function == "rsqrt" else getattr(xp, function)(w)
                values = xp.where(xp.isfinite(values), values, np.nan)
                y[...] = (v * values[..., None, :]) @ v.swapaxes(-1, -2)

    def vjp(self, g: Value, y: Value, x: Value, *, function: str) -> Sequence[Value | None]:
        """Apply `function_slope` to the symmetric parts of both."""
        y, x = upcast_operands(self, y, (x,), {"function": function})
        return (function_slope(hermitian_part(x), y, hermitian_part(upcast(g)), function),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 9 n³ for eigenvectors, plus a product."""
        return 11 * types[0].size * types[0].shape[-1]

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, its symmetric part, vectors, scaled vectors, a product, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 4 * n * n + 2 * n) + lapack_bytes("eigh", x)
