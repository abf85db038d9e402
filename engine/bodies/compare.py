"""Whole numbers that floats are compared with, as floats: loops of machine code read no others.

`x < 0` of a client that has no float there compares with an int64. Inside a loop that alone would have Python go
through its steps.
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
        return builder.copy(node, _alike(operands)) if node.op.name in _COMPARISONS else None

    return builder.rewrite(graph, alike)


def _alike(operands: Sequence[Value]) -> list[Value]:
    floats = [x.dtype for x in operands if x.type.is_float]
    return [_written(x, floats[0]) for x in operands] if len(floats) == 1 else [*operands]


def _written(x: Value, dtype: DType) -> Value:
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
