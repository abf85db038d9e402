"""Distances between rows."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.table import RULES


def _distance(call: Call, difference: Node) -> Node:
    """Of order 1 or 2, with the gradient 0 at 0."""
    order = float(call["p"])
    blocked_unless(order in (1, 2), f"it is of order {order:g}", "write it with abs, pow and sum")
    if order == 1:
        return difference.abs().sum(axes=[-1])
    return difference.norm(axes=[-1])


@RULES("_cdist_forward")
def cdist(call: Call) -> Said:
    """Between all rows of two tensors."""
    return _distance(call, call.node("x1").unsqueeze(axes=[-2]).sub(call.node("x2").unsqueeze(axes=[-3])))


@RULES("_pdist_forward")
def pdist(call: Call) -> Said:
    """Between all pairs of rows."""
    first, second = np.triu_indices(call.shape()[0], 1)
    x = call.node()
    return _distance(call, x.gather(indices=first.tolist()).sub(x.gather(indices=second.tolist())))
