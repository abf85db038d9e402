"""Results of an op with their axes in memory in other orders than it has them: as their readers want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.graph.dtypes import DTYPES
from engine.graph.op import Array, Kernel, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import Shape, Strided, TensorType
from engine.oplib.permutation import inverse


@dataclass(frozen=True, eq=False, repr=False)
class LaidResults(Kernel):
    """`op`, of several results, which writes wherever it is told: axis j of result k is axis `orders[k][j]` of its own.

    No op of the opset: one is made for each node, in plans for cards.
    """

    op: Kernel
    orders: tuple[Shape, ...]

    name = "laid_results"
    operands = ("x...",)
    several = True
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        # Which attributes there are is stated by a class, elsewhere.
        object.__setattr__(self, "attrs", self.op.attrs)

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Those of the op, with their axes in order."""
        found = self.op.infer(*types, **attrs)
        assert isinstance(found, tuple)
        return self.turned(found)

    def turned(self, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Types of the op's results with their axes in order."""
        each = zip(types, self.orders, strict=True)
        return tuple(type.with_shape([type.shape[a] for a in order]) for type, order in each)

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """As the op, on views."""
        turned = (array.transpose(inverse(order)) for array, order in zip(out, self.orders, strict=True))
        self.op.forward(run, *arrays, out=tuple(turned), **attrs)

    def flops(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Those of the op."""
        return self.op.flops(self.lying(out), *types, **attrs)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """That of the op."""
        return self.op.workspace(self.lying(out), *types, **attrs)

    def lying(self, out: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the op's own results, as they lie."""
        return tuple(_turned(type, inverse(order)) for type, order in zip(out, self.orders, strict=True))


def _turned(type: TensorType, order: Shape) -> TensorType:
    return Strided(type.with_shape([type.shape[a] for a in order]), [type.strides[a] for a in order])
