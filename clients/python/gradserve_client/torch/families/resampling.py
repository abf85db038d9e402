"""Resizing by constant matrices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.helpers import at_positions
from gradserve_client.torch.families.pools import along
from gradserve_client.torch.families.table import RULES

_KINDS: Final = (
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
)


@RULES(*(f"{kind}.vec" for kind in _KINDS))
def upsample(call: Call) -> Said:
    """A product with a constant matrix for each axis: PyTorch's own, of what it makes of the identity."""
    rank, axes = call.rank("input"), call.rank("input") - 2
    node = call.node("input")
    for i in range(axes):
        matrix = _matrix(call, i, axes)
        if np.array_equal(matrix, np.eye(*matrix.shape)) and matrix.shape[0] == matrix.shape[1]:
            continue
        if "nearest" in call.op:
            node = at_positions(node, matrix.argmax(axis=0).tolist(), 2 + i)
        else:
            node = along(node, matrix, 2 + i, rank, call.dtype("input"))
    return node


def _matrix(call: Call, i: int, axes: int) -> Any:
    """[extent, new extent] of spatial axis i."""
    extent, wanted = call.shape("input")[2 + i], call.result.shape[2 + i]
    spatial = [extent if axis == i else 1 for axis in range(axes)]
    identity = torch.eye(extent, dtype=getattr(torch, call.dtype("input"))).reshape(1, extent, *spatial)
    arguments = {
        name: value for name, value in call.arguments.items() if name not in ("input", "output_size", "scale_factors")
    }
    scales = call["scale_factors"]
    one = [wanted if axis == i else 1 for axis in range(axes)]
    sized = {
        "output_size": one if scales is None else None,
        "scale_factors": None if scales is None else [scales[i] if axis == i else 1.0 for axis in range(axes)],
    }
    packet = getattr(torch.ops.aten, call.op.removesuffix(".vec"))
    return packet.vec(identity, **sized, **arguments).reshape(extent, wanted).numpy()
