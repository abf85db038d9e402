"""Distances between rows."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES


def _distances(call: Call, a: Node, b: Node) -> Node:
    order = float(call["p"])
    require(0 < order < np.inf, f"its order is {order:g}", "write it with abs, and sum or amax")
    return a.cdist(b, p=order)


@RULES("_cdist_forward")
def cdist(call: Call) -> Results:
    """Compute the distances between all rows of two tensors."""
    return _distances(call, call.node("x1"), call.node("x2"))


@RULES("_pdist_forward")
def pdist(call: Call) -> Results:
    """Compute the distances between all pairs of rows: `cdist` of the rows with themselves, above the diagonal."""
    first, second = (call.constant(each, "int64") for each in np.triu_indices(call.shape()[0], 1))
    return call.graph.index(_distances(call, call.node(), call.node()), first, second)
