"""What the rules of all importers write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node

#: where a slice ends that goes to the end, whatever the extent is: so that this may be free
TO_THE_END: Final = 2**31 - 1


def size(shape: Sequence[int]) -> int:
    """How many elements there are."""
    return math.prod(shape)


def bordered(
    node: Node, shape: Sequence[int], before: Sequence[int], after: Sequence[int], fill: float | Node = 0.0
) -> Node:
    """A node of this shape with a number around it, or a scalar node. Negative borders are cut off."""
    starts = [max(0, -b) for b in before]
    stops = [TO_THE_END if a >= 0 else max(start, n + a) for n, a, start in zip(shape, after, starts, strict=True)]
    if any(starts) or any(stop != TO_THE_END for stop in stops):
        node = node.slice(starts=starts, stops=stops)
    around = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
    if not any(b or a for b, a in around):
        return node
    widths = [each for pair in around for each in pair]
    if not isinstance(fill, Node):
        return node.pad(widths, **filling(fill))
    # the axes that are left alone may have any extent
    extents = [
        max(0, n - start + min(0, a)) if max(pair) else 1
        for n, start, a, pair in zip(shape, starts, after, around, strict=True)
    ]
    inside = np.pad(np.ones(extents, np.bool_), around)
    return node.graph.constant(inside).where(node.pad(widths), fill)


def filling(fill: float) -> dict[str, Any]:
    """The attribute that states a number, if it is not the one that is there without."""
    if math.isfinite(fill):
        # of bools, a number
        stated = int(fill) if isinstance(fill, bool | np.bool_) else fill
        return {"fill": stated} if fill or math.copysign(1, fill) < 0 else {}
    return {"fill_as": "nan" if math.isnan(fill) else "inf" if fill > 0 else "-inf"}


def several(node: Node, count: int) -> list[Node]:
    """The results of a node that has several."""
    return [node.get_output(i) for i in range(count)]


def lowest(dtype: np.dtype[Any]) -> Any:
    """What no number of a dtype is smaller than."""
    return -np.inf if dtype.kind == "f" else np.False_ if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """What no number of a dtype is larger than."""
    return np.inf if dtype.kind == "f" else np.True_ if dtype.kind == "b" else np.iinfo(dtype).max
