"""Corrections of ONNX's reference evaluator, as of onnx 1.23."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from onnx import NodeProto, defs, helper


def with_current_name(node: NodeProto, opsets: Mapping[str, int]) -> tuple[NodeProto, Mapping[str, int]]:
    """Replace an old name of an op that the evaluator lacks with the current one."""
    if node.op_type != "Scatter":
        return node, opsets
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.op_type = "ScatterElements"
    return copy, {**opsets, "": 11}


def corrected_outputs(node: NodeProto, values: Mapping[str, Any]) -> list[Any] | None:
    """Return the outputs of a node that the evaluator computes wrongly, or None for any other node."""
    run = _CORRECTED.get(node.op_type) if node.domain in {"", "ai.onnx"} else None
    if run is None:
        return None
    schema = defs.get_schema(node.op_type)
    attrs = {name: each.default_value for name, each in schema.attributes.items() if each.default_value.type}
    attrs |= {each.name: each for each in node.attribute}
    stated = {name: helper.get_attribute_value(each) for name, each in attrs.items()}
    return [run(*(values[name] for name in node.input), **stated)]


def _lrn(x: Any, alpha: float, beta: float, bias: float, size: int) -> Any:
    """Compute ONNX's formula over all channels, for any rank.

    The evaluator normalises as many channels as there are images.
    """
    squares = np.zeros_like(x)
    channels, before = x.shape[1], (size - 1) // 2
    for c in range(channels):
        neighbours = x[:, max(0, c - before) : min(channels, c + size - before)]
        squares[:, c] = (neighbours**2).sum(axis=1)
    return (x / (bias + alpha / size * squares) ** beta).astype(x.dtype)


def _gather_elements(x: Any, indices: Any, axis: int) -> Any:
    """Gather elements at positions along an axis.

    The evaluator brings a position far out of range into it by one extent at a time.
    """
    return np.take_along_axis(x, indices, axis)


_CORRECTED: Final[Mapping[str, Callable[..., Any]]] = {"GatherElements": _gather_elements, "LRN": _lrn}
