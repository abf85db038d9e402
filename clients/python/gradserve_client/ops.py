"""The ops as methods of graphs and nodes, from the generated module `generated.ops`."""

from __future__ import annotations

from gradserve_client.generated.ops import SINCE, TENSOR_ATTRIBUTES, GraphOps, NodeOps

__all__ = ["SINCE", "TENSOR_ATTRIBUTES", "GraphOps", "NodeOps"]
