"""Normalization layers and running statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Result, Results, require
from gradserve_client.torch.families.table import RULES


def _eps(call: Call) -> float:
    eps = float(call["eps"])
    require(eps > 0, f"its eps must be positive, not {eps}")
    return eps


def _affine(call: Call, shape: Sequence[int]) -> tuple[Node | None, Node | None]:
    """Return weight and bias. If there is only a bias, the weight is ones of this shape."""
    weight, bias = call.optional_node("weight"), call.optional_node("bias")
    if weight is None and bias is not None:
        weight = call.graph.full(shape=[*shape], fill=1.0, dtype=call.dtype("input"))
    return weight, bias


@RULES("native_layer_norm")
def layer_norm(call: Call) -> Results:
    """Normalize over the last axes."""
    shape, x = call["normalized_shape"], call.node("input")
    axes = [*range(call.rank("input") - len(shape), call.rank("input"))]
    return [x.layer_norm(*_affine(call, shape), axes=axes, eps=_eps(call)), *_statistics(call, x, axes)]


def _statistics(call: Call, x: Node, axes: Sequence[int]) -> list[Result]:
    """Return the mean and 1 / √(variance + eps), or None for those that are not used."""
    mean = x.mean(axes=axes, keepdims=True) if call.is_used(1) else None
    inverse_deviation = x.var(axes=axes, keepdims=True).add_scalar(_eps(call)).rsqrt() if call.is_used(2) else None
    return [
        None if each is None else each.reshape(shape=list(kind.shape))
        for each, kind in zip((mean, inverse_deviation), call.results[1:3], strict=True)
    ]


@RULES("rms_norm")
def rms_norm(call: Call) -> Results:
    """Divide by the root mean square over the last axes."""
    count, x = len(call["normalized_shape"]), call.node("input")
    eps = torch.finfo(getattr(torch, call.dtype("input"))).eps if call["eps"] is None else _eps(call)
    axes = [*range(call.rank("input") - count, call.rank("input"))]
    return x.rms_norm(call.optional_node("weight"), axes=axes, eps=eps)


@RULES("native_group_norm")
def group_norm(call: Call) -> Results:
    """Normalize over groups of channels and all positions."""
    shape, groups, x = call.shape("input"), int(call["group"]), call.node("input")
    y = x.group_norm(*_affine(call, shape[1:2]), groups=groups, eps=_eps(call))
    if not (call.is_used(1) or call.is_used(2)):
        return [y, None, None]
    flat = x.reshape(shape=[shape[0], groups, size(shape[1:]) // groups])
    return [y, *_statistics(call, flat, [2])]


_RUNNING: Final = ("running_mean", "running_var")


@RULES(
    "_native_batch_norm_legit.no_stats",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
)
def batch_norm(call: Call) -> Results:
    """Normalize by the batch's statistics and update the running ones, or in evaluation by the running statistics."""
    x, weights = call.node("input"), _affine(call, call.shape("input")[1:2])
    attributes: dict[str, Any] = {"axis": 1, "eps": _eps(call)}
    if not call.arguments.get("training", False):
        mean, variance = (call.node(name) for name in _RUNNING)
        unchanged = [call.value(name) for name in _RUNNING] if call.op.endswith("functional") else []
        return [x.batch_norm_given(mean, variance, *weights, **attributes), None, None, *unchanged]
    statistics = _statistics(call, x, [axis for axis in range(call.rank("input")) if axis != 1])
    if not (call.is_used(3) or call.is_used(4)):
        return [x.batch_norm(*weights, **attributes), *statistics, *[None] * (len(call.results) - 3)]
    mean, variance = (call.node(name) for name in _RUNNING)
    node = x.batch_norm_running(mean, variance, *weights, **attributes, momentum=float(call["momentum"]))
    # running statistics have no gradient
    return [node.get_output(0), *statistics, *(node.get_output(i).stop_gradient() for i in (1, 2))]
