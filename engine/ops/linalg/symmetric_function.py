"""Functions of symmetric matrices, by their eigenvalues."""

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
from engine.ops.common.numerics import wide, widened
from engine.ops.linalg.lapack import lapack_bytes
from engine.ops.linalg.matrices import (
    Decomposition,
    chunk_workspace,
    chunks,
    column,
    factored,
    hermitian_part,
    row,
    square,
    symmetric_part,
)
from engine.ops.linalg.matrix_exp import exponential_slope, slope_by_matrix

#: the part of their sum that two numbers are apart, up to which the difference of their logarithms is that of a series
_NEAR: Final = 0.5


class SymmetricSlope(Op):
    """y = v (D ∘ (vᵀ e v)) vᵀ, the derivative of a function at x = v diag(w) vᵀ along e.

    Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), f′ where these meet; in forms that cancel nothing: 1 / (√wᵢ + √wⱼ), and
    log as 2 artanh z / (z (wᵢ + wⱼ)), z = (wᵢ − wⱼ) / (wᵢ + wⱼ). x, e and y [batch…, n, n], x symmetric. Self-adjoint
    in e.
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
        """Compute from eigenvalues."""
        if out.size:
            for (at, along), (y,) in chunks(run, [x, e], [out]):
                w, v = factored(run, "eigh", symmetric_part(at))
                turned = v.swapaxes(-1, -2)
                inner = turned @ along @ v
                inner *= _differences(run.xp, w, function)
                y[...] = v @ inner @ turned

    def vjp(self, h: Value, y: Value, x: Value, e: Value, *, function: str) -> Sequence[Value | None]:
        """The inverse function is a square, or an exponential: y solves r y + y r = e, or dexp(r)[y] = e, r = f(x)."""
        back = symmetric_slope(x, h, function)
        if function == "sqrt":
            by_root = back @ adjoint(y) + adjoint(y) @ back
        else:
            by_root = slope_by_matrix(x.symmetric_function(function="log"), y, back)
        return symmetric_slope(x, hermitian_part(-by_root), function), back

    def batch(self, mapped: Sequence[bool], x: Value, e: Value, *, function: str) -> Value:
        """Itself: N is one more batch axis."""
        x, e = batching.expand(mapped, (x, e))
        return symmetric_slope(x, e, function)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it with eigenvalues and vectors as results."""
        x, e = operands
        both = x.eigh()
        w, v = both.output(0), both.output(1)
        differences = _written_differences(w, attrs["function"])
        return [v @ (differences * (adjoint(v) @ e @ v)) @ adjoint(v)]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """9 n³ for eigenvectors, and four products."""
        return 17 * types[0].size * types[0].shape[-1]

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Copies, vectors, differences, products, and LAPACK's."""
        x, n = types[0], types[0].shape[-1]
        return chunk_workspace(x, (13 if attrs["function"] == "log" else 9) * n * n + 2 * n) + lapack_bytes("eigh", x)


def _differences(xp: Namespace, w: Array, function: str) -> Array:
    if function == "sqrt":
        root = xp.sqrt(w)
        return 1 / (root[..., :, None] + root[..., None, :])
    a, b = w[..., :, None], w[..., None, :]
    apart, total = a - b, a + b
    part = apart / total
    is_near = xp.abs(part) <= _NEAR
    near = xp.where(is_near, part, 0)
    ratio = xp.where(near == 0, 1, xp.arctanh(near) / xp.where(near == 0, 1, near))
    logs = xp.log(w)
    far = (logs[..., :, None] - logs[..., None, :]) / xp.where(is_near, 1, apart)
    return xp.where(is_near, 2 * ratio / total, far)


def _written_differences(w: Value, function: str) -> Value:
    if function == "sqrt":
        root = w.sqrt()
        return (column(root) + row(root)).reciprocal()
    apart, total = column(w) - row(w), column(w) + row(w)
    part = apart / total
    is_near, is_same = part.abs() <= _NEAR, apart.equal(apart * 0.0)
    near = is_same.where(_NEAR, is_near.where(part, _NEAR))
    logs = w.log()
    far = (column(logs) - row(logs)) / is_near.where(1.0, apart)
    return is_same.where(total.reciprocal() * 2.0, is_near.where(near.atanh() / near / total * 2.0, far))


_SLOPE: Final = SymmetricSlope()


def symmetric_slope(x: Value, e: Value, function: str) -> Value:
    """Append the derivative of sqrt or log at a symmetric x along e."""
    return x.builder.emit(_SLOPE, (x, e), {"function": function})


def function_slope(x: Value, y: Value, e: Value, function: str) -> Value:
    """The derivative of a function at a symmetric x along a symmetric e; y is its value there."""
    if function == "exp":
        return exponential_slope(x, e)
    if function == "rsqrt":
        return symmetric_slope(x, -(y @ e @ y), "sqrt")
    return symmetric_slope(x, e, function)


class SymmetricFunction(Decomposition):
    """y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.

    f is the square root, its reciprocal, the logarithm or the exponential, of eigenvalues. The gradient is by divided
    differences, which have a limit where eigenvalues meet: it is exact at equal ones, and so is the second, where
    v f vᵀ written with `eigh` has none. A matrix with an eigenvalue at which f is not finite, as log at 0 or below,
    gives NaN for itself alone, and so does one that holds an infinity or NaN, or for which LAPACK finds no answer.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein. SciPy's `sqrtm`, `logm` and `expm`
    of symmetric matrices; PyTorch and JAX have none whose gradient holds at equal eigenvalues, but for exp.
    """

    name = "symmetric_function"
    section = "symmetric_function"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "function": Attr(
            "string",
            REQUIRED,
            "the function of eigenvalues; rsqrt is 1 / sqrt",
            choices=("sqrt", "rsqrt", "log", "exp"),
        )
    }
    dtypes = REALS
    gradient = "v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), f′(wᵢ) where wᵢ = wⱼ"
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
        """LAPACK's syevd, and a product. An eigenvalue of which f is not finite makes NaN."""
        xp = run.xp
        if out.size:
            for (part,), (y,) in chunks(run, [x], [out]):
                w, v = factored(run, "eigh", symmetric_part(part))
                values = 1 / xp.sqrt(w) if function == "rsqrt" else getattr(xp, function)(w)
                values = xp.where(xp.isfinite(values), values, np.nan)
                y[...] = (v * values[..., None, :]) @ v.swapaxes(-1, -2)

    def vjp(self, g: Value, y: Value, x: Value, *, function: str) -> Sequence[Value | None]:
        """Apply `function_slope` to the symmetric parts of both."""
        y, x = widened(self, y, (x,), {"function": function})
        return (function_slope(hermitian_part(x), y, hermitian_part(wide(g)), function),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """9 n³ for eigenvectors, and a product."""
        return 11 * types[0].size * types[0].shape[-1]

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy, its symmetric part, vectors, these times values, their product, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 4 * n * n + 2 * n) + lapack_bytes("eigh", x)
