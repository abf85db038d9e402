"""What several families write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END
from gradserve_client.onnx.call import Call


def as_dtype(node: Node, found: Any, wanted: Any) -> Node:
    """A node of one dtype in another, cast where that is another."""
    return node if np.dtype(found) == np.dtype(wanted) else node.cast(np.dtype(wanted).name)


def summed_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that sums and products of this one have: int64 for all whole numbers."""
    return dtype if dtype.kind == "f" else np.dtype(np.int64)


def bordered(
    node: Node, shape: Sequence[int], before: Sequence[int], after: Sequence[int], fill: Node | None = None
) -> Node:
    """A node of this shape with entries around it: zeros, or those of a scalar node. Negative ones are cut off."""
    cuts = [(max(0, -b), extent - max(0, -a)) for extent, b, a in zip(shape, before, after, strict=True)]
    if any(cut != (0, extent) for cut, extent in zip(cuts, shape, strict=True)):
        stops = [TO_THE_END if a >= 0 else max(stop, start) for (start, stop), a in zip(cuts, after, strict=True)]
        node = node.slice(starts=[start for start, _ in cuts], stops=stops)
    before, after = [max(0, b) for b in before], [max(0, a) for a in after]
    if not any((*before, *after)):
        return node
    padded = node.pad([each for pair in zip(before, after, strict=True) for each in pair])
    if fill is None:
        return padded
    # the axes that are left alone may have any extent
    extents = [max(0, stop - start) if b or a else 1 for (start, stop), b, a in zip(cuts, before, after, strict=True)]
    inside = np.pad(np.ones(extents, np.bool_), [*zip(before, after, strict=True)])
    return node.graph.constant(inside).where(padded, fill)


def at_positions(node: Node, positions: Sequence[int], axis: int) -> Node:
    """The entries at positions of an axis, which are known."""
    return node.gather(axis=axis, indices=[int(each) for each in positions])


def wrapped_index(call: Call, i: int, extent: int) -> Node:
    """Operand i, positions of an axis, with those that count from the end counted from the front."""
    value = call.value(i)
    if call.is_constant(i):
        return call.constant(np.where(value.example < 0, value.example + extent, value.example), value.dtype)
    index = call.node(i)
    return index.less(call.like(0, i)).where(index.add(call.like(extent, i)), index)
