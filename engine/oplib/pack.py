"""Several values as one node: what a rule gives for an op of several results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Builder, Value
from engine.graph.op import NONE, Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import TensorType
from engine.oplib.batching import expand


class Pack(Op):
    """The operands themselves. `get_output` of it is the operand, so that nothing reads it once all is written."""

    name = "pack"
    operands = ("x...",)
    gradient: ClassVar[str] = "the cotangents, each to its operand"
    several = True
    internal = True
    dtypes = DTYPES

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """Those of the operands."""
        return types

    def forward(self, run: RunContext, *arrays: Array, out: Sequence[Array], **attrs: Any) -> None:
        """Copies."""
        for x, y in zip(arrays, out, strict=True):
            y[...] = x

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """As they are."""
        return g

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Each with the axis."""
        return bundled(operands[0].builder, expand(mapped, operands))


PACK = Pack()


def bundled(builder: Builder, values: Sequence[Value]) -> Value:
    """Append a node whose results these are."""
    return builder.emit(PACK, values, NONE)
