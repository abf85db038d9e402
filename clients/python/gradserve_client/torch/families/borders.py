"""Padding by constants, reflection or replication."""

from __future__ import annotations

import numpy as np

from gradserve_client.importing.writing import pad_or_crop
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.helpers import take
from gradserve_client.torch.families.table import RULES


def _pairs(call: Call) -> list[tuple[int, int]]:
    """Return the padding before and after each axis. PyTorch lists the last axis first."""
    pads = [int(each) for each in call["pad" if "pad" in call.arguments else "padding"]]
    by_axis = [(0, 0)] * call.rank()
    for i in range(len(pads) // 2):
        by_axis[call.rank() - 1 - i] = (pads[2 * i], pads[2 * i + 1])
    return by_axis


@RULES("constant_pad_nd")
def constant_pad(call: Call) -> Results:
    """Pad with a number. Negative padding cuts off."""
    before, after = zip(*_pairs(call), strict=True) if call.rank() else ((), ())
    return pad_or_crop(call.node(), call.shape(), before, after, call["value"] or 0)


@RULES(*(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def mirrored(call: Call) -> Results:
    """Pad with entries of the tensor, read at constant positions."""
    mode = "reflect" if call.op.startswith("reflection") else "edge"
    node = call.node()
    for axis, (before, after) in enumerate(_pairs(call)):
        if before or after:
            interior = np.arange(call.shape()[axis])[max(0, -before) : call.shape()[axis] - max(0, -after)]
            positions = np.pad(interior, (max(0, before), max(0, after)), mode)  # type: ignore[call-overload]
            node = take(node, positions.tolist(), axis)
    return node
