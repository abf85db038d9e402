"""Helpers for batching rules: align mapped operands, and pack several values into one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from engine.ir.graph import Builder, Value
from engine.ir.op import NONE, Array, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import DTYPES, TensorType


def batch_size(mapped: Sequence[bool], operands: Sequence[Value]) -> int:
    """Return the batch size N: the leading extent of any mapped operand."""
    return next(x.shape[0] for is_mapped, x in zip(mapped, operands, strict=True) if is_mapped)


def align(mapped: Sequence[bool], operands: Sequence[Value]) -> list[Value]:
    """Insert unit axes after N in mapped operands of lower rank, so that all still broadcast as without N."""
    rank = max(x.ndim - is_mapped for is_mapped, x in zip(mapped, operands, strict=True))
    return [
        x.reshape(shape=(x.shape[0], *[1] * (rank + 1 - x.ndim), *x.shape[1:])) if is_mapped and x.ndim <= rank else x
        for is_mapped, x in zip(mapped, operands, strict=True)
    ]


def expand(mapped: Sequence[bool], operands: Sequence[Value]) -> list[Value]:
    """Broadcast unmapped operands, so that all have the leading axis N."""
    n = batch_size(mapped, operands)
    return [
        x if is_mapped else x.broadcast_to(shape=(n, *x.shape)) for is_mapped, x in zip(mapped, operands, strict=True)
    ]


def shift_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Convert axes of the unbatched operand (counted from the front) to axes of the batched one."""
    return tuple(a + 1 for a in axes)


class BatchedAsIs(Op):
    """Base: the op treats leading axes alike, so it computes N examples with the same attributes."""

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Emit the op itself: N is one more leading axis."""
        return operands[0].builder.emit(self, operands, attrs)


class Pack(Op):
    """The operands unchanged, as results of one node. `get_output` of it is rewritten to the operand."""

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
        """Copy the operands."""
        for x, y in zip(arrays, out, strict=True):
            y[...] = x

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Pass the cotangents on."""
        return g

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Pack the operands again, all with the axis N."""
        return pack(operands[0].builder, expand(mapped, operands))


PACK = Pack()


def pack(builder: Builder, values: Sequence[Value]) -> Value:
    """Append a node whose results are `values`."""
    return builder.emit(PACK, values, NONE)
