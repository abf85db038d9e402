"""Resizing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.helpers import at_positions
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
def upsample(call: Call) -> Said:
    """`resize`; where PyTorch has other positions, entries at these, or a product with a matrix for each axis."""
    axes, node = call.rank("input") - 2, call.node("input")
    if "nearest" not in call.op and _by_extents(call):
        return _resized(call, node)
    matrices = [_matrix(call, i, axes) for i in range(axes)]
    if "nearest" in call.op:
        places = [matrix.argmax(axis=0) for matrix in matrices]
        if all(np.array_equal(each, _nearest(*matrix.shape)) for each, matrix in zip(places, matrices, strict=True)):
            return node.resize([*call.result.shape[2:]], method="nearest")
        for i, each in enumerate(places):
            node = at_positions(node, each.tolist(), 2 + i)
        return node
    for i, matrix in enumerate(matrices):
        node = _along(node, matrix.astype(call.dtype("input")), 2 + i, call.rank("input"))
    return node


def _nearest(extent: int, wanted: int) -> Any:
    """Where `resize` reads: the entry that the middle of each new one is in."""
    return np.minimum(((np.arange(wanted) + 0.5) * extent / wanted).astype(int), extent - 1)


def _by_extents(call: Call) -> bool:
    """Whether it is scaled by what the extents are, and not by a number that these are rounded from."""
    if call["align_corners"]:
        return not call.op.endswith("_aa.vec")
    scales = call["scale_factors"] or []
    pairs = zip(scales, call.shape("input")[2:], call.result.shape[2:], strict=False)
    return all(scale * extent == wanted for scale, extent, wanted in pairs)


def _resized(call: Call, node: Node) -> Node:
    return node.resize(
        [*call.result.shape[2:]],
        method="cubic" if "bicubic" in call.op else None,
        antialias=True if call.op.endswith("_aa.vec") else None,
        corners=True if call["align_corners"] else None,
    )


def _along(node: Node, matrix: Any, axis: int, rank: int) -> Node:
    """The product of an axis with a matrix [extent, new extent]."""
    constant = node.graph.constant(matrix)
    if axis == rank - 1:
        return node.matmul(constant)
    order = [*(i for i in range(rank) if i != axis), axis]
    return node.transpose(axes=order).matmul(constant).transpose(axes=[int(i) for i in np.argsort(order)])


def _matrix(call: Call, i: int, axes: int) -> Any:
    """[extent, new extent] of spatial axis i."""
    extent, wanted = call.shape("input")[2 + i], call.result.shape[2 + i]
    # other axes have two entries: of one, PyTorch's antialiasing takes the channels for the last axis
    along = [extent if axis == i else 1 for axis in range(axes)]
    spatial = [extent if axis == i else 2 for axis in range(axes)]
    identity = torch.eye(extent, dtype=getattr(torch, call.dtype("input"))).reshape(1, extent, *along)
    identity = identity.expand(1, extent, *spatial).contiguous()
    arguments = {
        name: value for name, value in call.arguments.items() if name not in ("input", "output_size", "scale_factors")
    }
    scales = call["scale_factors"]
    sizes = [wanted if axis == i else 2 for axis in range(axes)]
    sized = {
        "output_size": sizes if scales is None else None,
        "scale_factors": None if scales is None else [scales[i] if axis == i else 1.0 for axis in range(axes)],
    }
    packet = getattr(torch.ops.aten, call.op.removesuffix(".vec"))
    made = packet.vec(identity, **sized, **arguments)
    return made[(0, slice(None), *(slice(None) if axis == i else 0 for axis in range(axes)))].numpy()
