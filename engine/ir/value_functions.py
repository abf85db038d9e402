"""Functions of values that write no node where nothing would change: conjugate, adjoint, cast, permute, reshape.

The cotangent of z = x + iy is ∂L/∂x + i ∂L/∂y, so that reverse mode is the adjoint under Re⟨a, b⟩: a holomorphic f
pulls g back to g · conj(f′), as in PyTorch. JAX's `grad` is its conjugate.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.graph import Value
from engine.ir.tensor_type import TensorType


def conjugate(x: Value) -> Value:
    """conj x; x itself where it is real."""
    return x.conj() if x.type.is_complex else x


def adjoint(x: Value) -> Value:
    """xᴴ of the matrices on the last two axes; xᵀ where they are real."""
    return conjugate(x.transpose())


def for_real(g: Value, type: TensorType) -> Value:
    """The part of a cotangent that is one of a tensor of this type: of a real tensor, the real part."""
    return g.real() if g.type.is_complex and not type.is_complex else g


def for_dtype(g: Value, type: TensorType) -> Value:
    """The same, in the dtype of the tensor."""
    part = for_real(g, type)
    return part if part.dtype == type.dtype else part.cast(dtype=type.dtype)


def permute(x: Value, order: Sequence[int]) -> Value:
    """x with its axes in this order; x itself where they are."""
    return x if list(order) == list(range(x.ndim)) else x.transpose(axes=tuple(order))


def unpermute(x: Value, order: Sequence[int]) -> Value:
    """Undo `permute` by `order`."""
    return permute(x, inverse(order))


def shaped(x: Value, shape: Sequence[int]) -> Value:
    """x in another shape; x itself where it has it."""
    return x if x.shape == tuple(shape) else x.reshape(shape=tuple(shape))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
