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
