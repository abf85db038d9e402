"""The opset that a graph declares. A graph that declares none is of opset 1, and may use its ops only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from gradserve_client import ops, tensors
from gradserve_client.graph import Graph, Node

#: the opset of a graph that declares none
FIRST: Final = 1
#: the first opset with functions
_FUNCTIONS: Final = 2


def opset_of(graph: Graph) -> int | None:
    """Return the declared opset, or else the lowest with all ops, attributes and dtypes used; None for opset 1."""
    if graph.opset is not None:
        return graph.opset
    nodes = (node for part in (graph, *(function.nodes for function in graph.functions)) for node in part)
    node_opsets = (opset for node in nodes for opset in _required_by(node))
    required = max(_FUNCTIONS if graph.functions else FIRST, *node_opsets, FIRST)
    return required if required > FIRST else None


def _required_by(node: Node) -> Iterator[int]:
    yield ops.SINCE.get(node.op, FIRST)
    for name, value in node.attrs.items():
        yield ops.SINCE.get(f"{node.op}.{name}", FIRST)
        if isinstance(value, np.ndarray):
            yield tensors.SINCE.get(value.dtype.name, FIRST)
        elif name == "dtype" and isinstance(value, str):
            yield tensors.SINCE.get(value, FIRST)
