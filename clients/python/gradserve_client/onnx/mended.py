"""What ONNX's reference evaluator lacks, or has wrong, in onnx 1.23."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from onnx import NodeProto, defs, helper


def renamed(node: NodeProto, opsets: Mapping[str, int]) -> tuple[NodeProto, Mapping[str, int]]:
    """The node as an op that the evaluator has, where it lacks an older name of it."""
    if node.op_type != "Scatter":
        return node, opsets
    made = NodeProto()
    made.CopyFrom(node)
    made.op_type = "ScatterElements"
    return made, {**opsets, "": 11}


def mended(node: NodeProto, values: Mapping[str, Any]) -> list[Any] | None:
    """The outputs of a node that the evaluator has wrong; None for any other."""
    run = _MENDED.get(node.op_type) if node.domain in {"", "ai.onnx"} else None
    if run is None:
        return None
    schema = defs.get_schema(node.op_type)
    attrs = {name: each.default_value for name, each in schema.attributes.items() if each.default_value.type}
    attrs |= {each.name: each for each in node.attribute}
    stated = {name: helper.get_attribute_value(each) for name, each in attrs.items()}
    return [run(*(values[name] for name in node.input), **stated)]


def _lrn(x: Any, alpha: float, beta: float, bias: float, size: int) -> Any:
    """ONNX's formula over all channels, of any rank. The evaluator normalises as many channels as there are images."""
    squares = np.zeros_like(x)
    channels, before = x.shape[1], (size - 1) // 2
    for c in range(channels):
        near = x[:, max(0, c - before) : min(channels, c + size - before)]
        squares[:, c] = (near**2).sum(axis=1)
    return (x / (bias + alpha / size * squares) ** beta).astype(x.dtype)


def _gather_elements(x: Any, indices: Any, axis: int) -> Any:
    """Elements at positions along an axis. The evaluator takes a position that is far outside one extent at a time."""
    return np.take_along_axis(x, indices, axis)


_MENDED: Final[Mapping[str, Callable[..., Any]]] = {"GatherElements": _gather_elements, "LRN": _lrn}
