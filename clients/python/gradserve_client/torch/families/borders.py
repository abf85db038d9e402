"""Pads of constants, of reflections, of the border."""

from __future__ import annotations

import numpy as np

from gradserve_client.importing.writing import bordered
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.helpers import at_positions
from gradserve_client.torch.families.table import RULES


def _pairs(call: Call) -> list[tuple[int, int]]:
    """Entries before and after, by axis: PyTorch states the last axis first."""
    pads = [int(each) for each in call["pad" if "pad" in call.arguments else "padding"]]
    found = [(0, 0)] * call.rank()
    for i in range(len(pads) // 2):
        found[call.rank() - 1 - i] = (pads[2 * i], pads[2 * i + 1])
    return found


@RULES("constant_pad_nd")
def constant_pad(call: Call) -> Said:
    """With a number; negative ones cut off."""
    before, after = zip(*_pairs(call), strict=True) if call.rank() else ((), ())
    return bordered(call.node(), call.shape(), before, after, call["value"] or 0)


@RULES(*(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def mirrored(call: Call) -> Said:
    """With entries of the tensor itself, at positions that are known."""
    mode = "reflect" if call.op.startswith("reflection") else "edge"
    node = call.node()
    for axis, (before, after) in enumerate(_pairs(call)):
        if before or after:
            whole = np.arange(call.shape()[axis])[max(0, -before) : call.shape()[axis] - max(0, -after)]
            positions = np.pad(whole, (max(0, before), max(0, after)), mode)  # type: ignore[call-overload]
            node = at_positions(node, positions.tolist(), axis)
    return node
