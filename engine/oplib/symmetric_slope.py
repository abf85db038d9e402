"""The derivative of a function of a symmetric matrix along a direction, exact at equal eigenvalues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.graph.attributes import REQUIRED, Attr
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import TensorType
from engine.oplib import batching
from engine.oplib.conjugates import adjoint
from engine.oplib.decomposition import chunk_workspace
from engine.oplib.exponentials import exponential_slope, slope_by_matrix
from engine.oplib.factors import chunks, factored, symmetric_part
from engine.oplib.lapack_work import lapack_bytes
from engine.oplib.spectrum import column, hermitian_part, row

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
        """That of x."""
        return x

    def forward(self, run: RunContext, x: Array, e: Array, *, out: Array, function: str) -> None:
        """By eigenvalues."""
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
        """By eigenvalues and vectors as results."""
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
