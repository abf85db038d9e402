"""Attention a tile of scores at a time: what it means, its kernel, and the way back."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Op, ResultTypes
from engine.graph.tensor_type import Shape, TensorType, broadcast
from engine.oplib import batching


class ScoreOp(Op):
    """Base: an op on the scores of q [..., queries, d] and k [..., keys, d].

    All operands have one dtype, float32 or float64, but for a mask, and axes before the last two that broadcast.
    """

    internal = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "scale": Attr("float", doc="what q kᵀ is multiplied by"),
        "causal": Attr("bool", doc="hide key j from query i where j > i"),
    }
    #: products that each score takes part in: over the d of queries and keys, and over the width of values
    products: ClassVar[int]

    @abstractmethod
    def written_out(self, *operands: Any, **attrs: Any) -> Sequence[Value]:
        """Its results in ops of the registry, which hold whole matrices of scores."""

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """N is one more leading axis, once the ranks agree."""
        aligned = batching.align(mapped, operands)
        return aligned[0].builder.emit(self, aligned, attrs)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """14 for each score, as softmax, and its products: a multiplication and an addition for each step."""
        q, k, v, *_ = types
        scores = math.prod(batch_axes(*types)) * q.shape[-2] * k.shape[-2]
        return scores * (14 + self.products * (q.shape[-1] + v.shape[-1]))


def batch_axes(*types: TensorType) -> Shape:
    """The broadcast of all axes but the last two."""
    return broadcast(*(t.shape[:-2] for t in types))
