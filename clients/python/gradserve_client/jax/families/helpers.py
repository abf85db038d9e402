"""What several families write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END


def transposed(node: Node, order: Sequence[int]) -> Node:
    """A node with its axes in another order; itself, where that is the same."""
    return node if [*order] == [*range(len(order))] else node.transpose(axes=[int(axis) for axis in order])


def inverse(order: Sequence[int]) -> list[int]:
    """The permutation that undoes another."""
    return [int(axis) for axis in np.argsort(order)]


def bordered(node: Node, shape: Sequence[int], before: Sequence[int], after: Sequence[int], fill: Node) -> Node:
    """A node of this shape with copies of a scalar node around it. Negative borders are cut off."""
    cut = [(max(0, -b), max(0, -a)) for b, a in zip(before, after, strict=True)]
    if any(max(pair) for pair in cut):
        stops = [TO_THE_END if not a else max(0, n - a) for (_, a), n in zip(cut, shape, strict=True)]
        node = node.slice(starts=[b for b, _ in cut], stops=stops)
    before, after = [max(0, b) for b in before], [max(0, a) for a in after]
    if not any((*before, *after)):
        return node
    # the axes that are left alone may have any extent
    extents = [
        max(0, n - b - a) if one or other else 1
        for n, (b, a), one, other in zip(shape, cut, before, after, strict=True)
    ]
    inside = np.pad(np.ones(extents, np.bool_), [*zip(before, after, strict=True)])
    padded = node.pad([each for pair in zip(before, after, strict=True) for each in pair])
    return node.graph.constant(inside).where(padded, fill)


def zero_bordered(node: Node, before: Sequence[int], after: Sequence[int]) -> Node:
    """A node with zeros around it."""
    if not any((*before, *after)):
        return node
    return node.pad([each for pair in zip(before, after, strict=True) for each in pair])


def spread(node: Node, shape: Sequence[int], interior: Sequence[int]) -> Node:
    """A node of this shape with so many zeros between neighbours on each axis."""
    for axis, (extent, gap) in enumerate(zip(shape, interior, strict=True)):
        if gap and extent > 1:
            wide = node.unsqueeze(axes=[axis + 1])
            widths = [0] * (2 * (len(shape) + 1))
            widths[2 * (axis + 1) + 1] = gap
            merged = wide.pad(widths).flatten(axes=[axis, axis + 1])
            node = merged.slice(stops=[TO_THE_END] * axis + [extent + (extent - 1) * gap])
    return node


def spread_extents(shape: Sequence[int], interior: Sequence[int]) -> list[int]:
    """The extents that `spread` gives."""
    return [extent + max(0, extent - 1) * gap for extent, gap in zip(shape, interior, strict=True)]
