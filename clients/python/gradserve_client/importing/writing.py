"""Helpers with which the rules of all importers append nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node

#: the stop of a slice to the end of an axis: it does not depend on the extent, which may be free
TO_THE_END: Final = 2**31 - 1


def size(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)


def pad_or_crop(
    node: Node, shape: Sequence[int], before: Sequence[int], after: Sequence[int], fill: float | Node = 0.0
) -> Node:
    """Pad a node of this shape with a number, or with the value of a scalar node. Negative borders are cropped."""
    starts = [max(0, -b) for b in before]
    stops = [TO_THE_END if a >= 0 else max(start, n + a) for n, a, start in zip(shape, after, starts, strict=True)]
    if any(starts) or any(stop != TO_THE_END for stop in stops):
        node = node.slice(starts=starts, stops=stops)
    borders = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
    if not any(b or a for b, a in borders):
        return node
    widths = [each for pair in borders for each in pair]
    if not isinstance(fill, Node):
        return node.pad(widths, **fill_attribute(fill))
    # Extents of 1 on unpadded axes broadcast, so that these may be free.
    extents = [
        max(0, n - start + min(0, a)) if max(pair) else 1
        for n, start, a, pair in zip(shape, starts, after, borders, strict=True)
    ]
    is_inside = np.pad(np.ones(extents, np.bool_), borders)
    return node.graph.constant(is_inside).where(node.pad(widths), fill)


def fill_attribute(fill: float) -> dict[str, Any]:
    """Return the attribute for a fill value; nothing for 0, the default."""
    if math.isfinite(fill):
        # The attribute is a number, even if the tensor is of bools.
        value = int(fill) if isinstance(fill, bool | np.bool_) else fill
        return {"fill": value} if fill or math.copysign(1, fill) < 0 else {}
    return {"fill_as": "nan" if math.isnan(fill) else "inf" if fill > 0 else "-inf"}


def outputs_of(node: Node, count: int) -> list[Node]:
    """Return the results of a node with several results."""
    return [node.get_output(i) for i in range(count)]


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the smallest value of a dtype, −∞ for floats."""
    return -np.inf if dtype.kind == "f" else np.False_ if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """Return the largest value of a dtype, ∞ for floats."""
    return np.inf if dtype.kind == "f" else np.True_ if dtype.kind == "b" else np.iinfo(dtype).max
