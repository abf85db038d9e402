"""Whole numbers that floats are compared with, as floats: compiled kernels read no others.

`x < 0` of a client that has no float there compares with an int64. Inside a loop that alone would have Python step
through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.graph.dtypes import INTEGERS
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.tensor_type import DType

_COMPARISONS: Final = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})


def compared_as_floats(graph: Graph) -> Graph:
    """`graph` with the same results: only numbers that the other side's dtype has are written in it."""
    if not any(node.op.name in _COMPARISONS for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, NO_LIMITS)

    def alike(node: Node, operands: Sequence[Value]) -> Value | None:
        if node.op.name not in _COMPARISONS:
            return None
        floats = [x.dtype for x in operands if x.type.is_float]
        return builder.copy(node, [_as_float(x, floats[0]) for x in operands] if len(floats) == 1 else operands)

    return builder.rewrite(graph, alike)


def _as_float(x: Value, dtype: DType) -> Value:
    number = _whole(x.node)
    if number is None:
        return x
    with np.errstate(over="ignore"):
        rounded = float(np.float64(number).astype(dtype))
    return x.builder.full(x.shape, rounded, dtype) if rounded == number else x


def _whole(node: Node) -> int | None:
    """The one number of a whole constant."""
    if node.op.name not in ("constant", "full") or node.type.dtype.name not in INTEGERS:
        return None
    stated = np.asarray(node.attrs["value" if node.op.name == "constant" else "fill"])
    return int(stated.item()) if stated.size == 1 else None
