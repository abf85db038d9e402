"""The derivative of a determinant, singular or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import NONE, Array, Namespace, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import TensorType
from engine.oplib.conjugates import conjugate
from engine.oplib.decomposition import chunk_workspace, operations
from engine.oplib.factors import chunks, factored
from engine.oplib.lapack_work import lapack_bytes


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
        """That of x."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array) -> None:
        """By singular values."""
        if out.size:
            for (part,), (y,) in chunks(run, [x], [out]):
                u, s, vh = factored(run, "svd", part)
                signs = run.xp.linalg.det(u) * run.xp.linalg.det(vh)
                others = _products_of_others(run.xp, s) * signs[:, None]
                y[...] = (u.conj() * others[:, None, :]) @ vh.conj()

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """From d(det x x⁻ᵀ)."""
        z = conjugate(y)
        total = (g * z).sum(axes=(x.ndim - 2, x.ndim - 1), keepdims=True)
        return ((total * z - z @ g.transpose() @ z) / conjugate(x.det()).reshape(shape=total.shape),)

    def batch(self, mapped: Sequence[bool], x: Value) -> Value:
        """Itself: N is one more batch axis."""
        return cofactors(x)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """By the inverse."""
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
    """For each entry along the last axis, the product of all others; nothing is divided."""
    before, behind = xp.ones_like(s), xp.ones_like(s)
    before[:, 1:] = xp.cumprod(s[:, :-1], axis=-1)
    behind[:, :-1] = xp.cumprod(s[:, :0:-1], axis=-1)[:, ::-1]
    return before * behind


_OP: Final = Cofactors()


def cofactors(x: Value) -> Value:
    """Append the matrix of cofactors."""
    return x.builder.emit(_OP, (x,), NONE)
