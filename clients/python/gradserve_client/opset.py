"""The opset that a graph says it is of: a server takes one that says nothing for the first, and has no more in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from gradserve_client import ops, tensors
from gradserve_client.graph import Graph, Node

#: of a graph that does not say
FIRST: Final = 1
#: since which graphs have functions
_FUNCTIONS: Final = 2


def opset_of(graph: Graph) -> int | None:
    """What its program states, or the first that has its ops, attributes and dtypes; None where it need not say."""
    if graph.opset is not None:
        return graph.opset
    nodes = (node for part in (graph, *(function.nodes for function in graph.functions)) for node in part)
    of_nodes = (opset for node in nodes for opset in _needed_by(node))
    needed = max(_FUNCTIONS if graph.functions else FIRST, *of_nodes, FIRST)
    return needed if needed > FIRST else None


def _needed_by(node: Node) -> Iterator[int]:
    yield ops.SINCE.get(node.op, FIRST)
    for name, value in node.attrs.items():
        yield ops.SINCE.get(f"{node.op}.{name}", FIRST)
        if isinstance(value, np.ndarray):
            yield tensors.SINCE.get(value.dtype.name, FIRST)
        elif name == "dtype" and isinstance(value, str):
            yield tensors.SINCE.get(value, FIRST)
