"""Helpers of batching rules: mapped operands brought into line, and several values as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from engine.ir.graph import Builder, Value
from engine.ir.op import NONE, Array, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import DTYPES, TensorType


def size(mapped: Sequence[bool], operands: Sequence[Value]) -> int:
    """The batch size N: the leading extent of any mapped operand."""
    return next(x.shape[0] for m, x in zip(mapped, operands, strict=True) if m)


def align(mapped: Sequence[bool], operands: Sequence[Value]) -> list[Value]:
    """Operands that broadcast as before, with N in front: unit axes go behind N where a mapped rank is short."""
    rank = max(x.ndim - m for m, x in zip(mapped, operands, strict=True))
    return [
        x.reshape(shape=(x.shape[0], *[1] * (rank + 1 - x.ndim), *x.shape[1:])) if m and x.ndim <= rank else x
        for m, x in zip(mapped, operands, strict=True)
    ]


def expand(mapped: Sequence[bool], operands: Sequence[Value]) -> list[Value]:
    """All operands with the leading axis N: the ones that lack it are broadcast."""
    n = size(mapped, operands)
    return [x if m else x.broadcast_to(shape=(n, *x.shape)) for m, x in zip(mapped, operands, strict=True)]


def shift(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes (counted from the front) of the unbatched operand, as axes of the batched one."""
    return tuple(a + 1 for a in axes)


class BatchedAsIs(Op):
    """Base: leading axes are free, so that the op itself serves N examples, with the same attributes."""

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Itself: N is one more leading axis."""
        return operands[0].builder.emit(self, operands, attrs)


class Pack(Op):
    """The operands themselves. `get_output` of it is the operand, so that nothing reads it once all is written."""

    name = "pack"
    operands = ("x...",)
    gradient: ClassVar[str] = "the cotangents, each to its operand"
    several = True
    internal = True
    dtypes = DTYPES

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """Return the types of the operands."""
        return types

    def forward(self, run: RunContext, *arrays: Array, out: Sequence[Array], **attrs: Any) -> None:
        """Copies."""
        for x, y in zip(arrays, out, strict=True):
            y[...] = x

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Pass the cotangents on."""
        return g

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Each with the axis."""
        return bundled(operands[0].builder, expand(mapped, operands))


PACK = Pack()


def bundled(builder: Builder, values: Sequence[Value]) -> Value:
    """Append a node whose results these are."""
    return builder.emit(PACK, values, NONE)
