"""Resizing of images."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.helpers import take
from gradserve_client.torch.families.table import RULES

_KINDS: Final = (
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
)


@RULES(*(f"{kind}.vec" for kind in _KINDS))
def upsample(call: Call) -> Results:
    """Write `resize`. If PyTorch samples at other positions, read at those, or multiply each axis by a matrix."""
    axes, node = call.rank("input") - 2, call.node("input")
    if "nearest" not in call.op and _scales_by_extents(call):
        return _resize(call, node)
    matrices = [_matrix(call, i, axes) for i in range(axes)]
    if "nearest" in call.op:
        indices = [matrix.argmax(axis=0) for matrix in matrices]
        if all(np.array_equal(each, _nearest(*matrix.shape)) for each, matrix in zip(indices, matrices, strict=True)):
            return node.resize([*call.result.shape[2:]], method="nearest")
        for i, each in enumerate(indices):
            node = take(node, each.tolist(), 2 + i)
        return node
    for i, matrix in enumerate(matrices):
        node = _multiply_axis(node, matrix.astype(call.dtype("input")), 2 + i, call.rank("input"))
    return node


def _nearest(extent: int, new_extent: int) -> Any:
    """Return the positions that `resize` reads: the entry that contains the centre of each new entry."""
    return np.minimum(((np.arange(new_extent) + 0.5) * extent / new_extent).astype(int), extent - 1)


def _scales_by_extents(call: Call) -> bool:
    """Return whether the scale is the ratio of the extents, and not a factor whose result was rounded."""
    if call["align_corners"]:
        return not call.op.endswith("_aa.vec")
    scales = call["scale_factors"] or []
    pairs = zip(scales, call.shape("input")[2:], call.result.shape[2:], strict=False)
    return all(scale * extent == new_extent for scale, extent, new_extent in pairs)


def _resize(call: Call, node: Node) -> Node:
    return node.resize(
        [*call.result.shape[2:]],
        method="cubic" if "bicubic" in call.op else None,
        antialias=True if call.op.endswith("_aa.vec") else None,
        corners=True if call["align_corners"] else None,
    )


def _multiply_axis(node: Node, matrix: Any, axis: int, rank: int) -> Node:
    """Multiply an axis by a matrix [extent, new extent]."""
    constant = node.graph.constant(matrix)
    if axis == rank - 1:
        return node.matmul(constant)
    order = [*(i for i in range(rank) if i != axis), axis]
    return node.transpose(axes=order).matmul(constant).transpose(axes=[int(i) for i in np.argsort(order)])


def _matrix(call: Call, i: int, axes: int) -> Any:
    """Return the matrix [extent, new extent] of spatial axis i, by resizing unit vectors with PyTorch."""
    extent, new_extent = call.shape("input")[2 + i], call.result.shape[2 + i]
    # other axes have two entries: with one, PyTorch's antialiasing takes the channels as the last axis
    along = [extent if axis == i else 1 for axis in range(axes)]
    spatial = [extent if axis == i else 2 for axis in range(axes)]
    identity = torch.eye(extent, dtype=getattr(torch, call.dtype("input"))).reshape(1, extent, *along)
    identity = identity.expand(1, extent, *spatial).contiguous()
    arguments = {
        name: value for name, value in call.arguments.items() if name not in ("input", "output_size", "scale_factors")
    }
    scales = call["scale_factors"]
    sizes = [new_extent if axis == i else 2 for axis in range(axes)]
    size_arguments = {
        "output_size": sizes if scales is None else None,
        "scale_factors": None if scales is None else [scales[i] if axis == i else 1.0 for axis in range(axes)],
    }
    packet = getattr(torch.ops.aten, call.op.removesuffix(".vec"))
    resized = packet.vec(identity, **size_arguments, **arguments)
    return resized[(0, slice(None), *(slice(None) if axis == i else 0 for axis in range(axes)))].numpy()
