"""What several families write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call


def as_dtype(node: Node, found: Any, wanted: Any) -> Node:
    """A node of one dtype in another, cast where that is another."""
    return node if np.dtype(found) == np.dtype(wanted) else node.cast(np.dtype(wanted).name)


def summed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that sums and products of this one have: int64 for all whole numbers."""
    return dtype if dtype.kind == "f" else np.dtype(np.int64)


def at_positions(node: Node, positions: Sequence[int], axis: int) -> Node:
    """The entries at positions of an axis, which are known."""
    return node.gather(axis=axis, indices=[int(each) for each in positions])


def from_front(call: Call, i: int, extent: int) -> Node:
    """Operand i, positions of an axis, those of which are counted from the front that are known."""
    value = call.value(i)
    if call.is_constant(i):
        return call.constant(np.where(value.example < 0, value.example + extent, value.example), value.dtype)
    return call.node(i)


def counted(call: Call, i: int) -> dict[str, Any]:
    """The attribute by which negative positions among operand i count from the end, where they may be some."""
    return {} if call.is_constant(i) else {"from_end": True}


def everywhere(call: Call, index: Node, extents: Sequence[int], axis: int) -> list[Node]:
    """An index along an axis as one of all axes: of the others, the places of its own entries."""
    return [
        index if i == axis else call.constant(np.arange(n).reshape([-1, *[1] * (len(extents) - 1 - i)]), np.int64)
        for i, n in enumerate(extents)
    ]
