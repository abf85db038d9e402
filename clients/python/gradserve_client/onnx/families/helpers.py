"""Helpers of several families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call


def as_dtype(node: Node, current: Any, target: Any) -> Node:
    """Cast a node from dtype `current` to dtype `target`, unless they are equal."""
    return node if np.dtype(current) == np.dtype(target) else node.cast(np.dtype(target).name)


def summed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of sums and products of this dtype: int64 for all integers."""
    return dtype if dtype.kind == "f" else np.dtype(np.int64)


def at_positions(node: Node, positions: Sequence[int], axis: int) -> Node:
    """Gather the entries at constant positions of an axis."""
    return node.gather(axis=axis, indices=[int(each) for each in positions])


def from_front(call: Call, i: int, extent: int) -> Node:
    """Return operand i, positions on an axis, with negative positions counted from the front if they are constant."""
    value = call.value(i)
    if call.is_constant(i):
        return call.constant(np.where(value.example < 0, value.example + extent, value.example), value.dtype)
    return call.node(i)


def counted(call: Call, i: int) -> dict[str, Any]:
    """Return the attribute that lets negative positions in operand i count from the end, if it may hold any."""
    return {} if call.is_constant(i) else {"from_end": True}


def everywhere(call: Call, index: Node, extents: Sequence[int], axis: int) -> list[Node]:
    """Extend an index along one axis to an index of all axes: on the others, each entry keeps its own position."""
    return [
        index if i == axis else call.constant(np.arange(n).reshape([-1, *[1] * (len(extents) - 1 - i)]), np.int64)
        for i, n in enumerate(extents)
    ]
