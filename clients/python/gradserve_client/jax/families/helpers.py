"""Helpers shared by several rule families."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END


def transpose_axes(node: Node, order: Sequence[int]) -> Node:
    """Transpose a node, or return it if the order is unchanged."""
    return node if [*order] == [*range(len(order))] else node.transpose(axes=[int(axis) for axis in order])


def inverse_order(order: Sequence[int]) -> list[int]:
    """Return the inverse of a permutation."""
    return [int(axis) for axis in np.argsort(order)]


def insert_gaps(node: Node, shape: Sequence[int], interior: Sequence[int]) -> Node:
    """Insert `interior` zeros between neighbours on each axis of a node of this shape."""
    for axis, (extent, gap) in enumerate(zip(shape, interior, strict=True)):
        if gap and extent > 1:
            wide = node.unsqueeze(axes=[axis + 1])
            widths = [0] * (2 * (len(shape) + 1))
            widths[2 * (axis + 1) + 1] = gap
            merged = wide.pad(widths).flatten(axes=[axis, axis + 1])
            node = merged.slice(stops=[TO_THE_END] * axis + [extent + (extent - 1) * gap])
    return node


def gapped_shape(shape: Sequence[int], interior: Sequence[int]) -> list[int]:
    """Return the shape of the result of `insert_gaps`."""
    return [extent + max(0, extent - 1) * gap for extent, gap in zip(shape, interior, strict=True)]
