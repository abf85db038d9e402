"""The ops, each as a method, from the machine-made module `generated.ops`."""

from __future__ import annotations

from gradserve_client.generated.ops import SINCE, TENSOR_ATTRIBUTES, GraphOps, NodeOps

__all__ = ["SINCE", "TENSOR_ATTRIBUTES", "GraphOps", "NodeOps"]
