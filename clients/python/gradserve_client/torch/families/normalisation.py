"""Means and variances taken out, and running statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Result, Said, blocked_unless
from gradserve_client.torch.families.table import RULES


def _eps(call: Call) -> float:
    eps = float(call["eps"])
    blocked_unless(eps > 0, f"its eps is {eps}, which has to be positive")
    return eps


def _affine(call: Call, shape: Sequence[int]) -> tuple[Node | None, Node | None]:
    """Weight and bias, of this shape; of a bias alone, ones beside it."""
    weight, bias = call.node_or_none("weight"), call.node_or_none("bias")
    if weight is None and bias is not None:
        weight = call.graph.full(shape=[*shape], fill=1.0, dtype=call.dtype("input"))
    return weight, bias


@RULES("native_layer_norm")
def layer_norm(call: Call) -> Said:
    """Over the last axes."""
    shape, x = call["normalized_shape"], call.node("input")
    axes = [*range(call.rank("input") - len(shape), call.rank("input"))]
    return [x.layer_norm(*_affine(call, shape), axes=axes, eps=_eps(call)), *_statistics(call, x, axes)]


def _statistics(call: Call, x: Node, axes: Sequence[int]) -> list[Result]:
    """Mean and 1 / √(variance + eps), where they are asked for."""
    mean = x.mean(axes=axes, keepdims=True) if call.asked(1) else None
    spread = x.var(axes=axes, keepdims=True).add_scalar(_eps(call)).rsqrt() if call.asked(2) else None
    return [
        None if each is None else each.reshape(shape=list(kind.shape))
        for each, kind in zip((mean, spread), call.results[1:3], strict=True)
    ]


@RULES("rms_norm")
def rms_norm(call: Call) -> Said:
    """By the root of the mean square over the last axes."""
    count, x = len(call["normalized_shape"]), call.node("input")
    eps = torch.finfo(getattr(torch, call.dtype("input"))).eps if call["eps"] is None else _eps(call)
    axes = [*range(call.rank("input") - count, call.rank("input"))]
    return x.rms_norm(call.node_or_none("weight"), axes=axes, eps=eps)


@RULES("native_group_norm")
def group_norm(call: Call) -> Said:
    """Over groups of channels and all positions."""
    shape, groups, x = call.shape("input"), int(call["group"]), call.node("input")
    y = x.group_norm(*_affine(call, shape[1:2]), groups=groups, eps=_eps(call))
    if not (call.asked(1) or call.asked(2)):
        return [y, None, None]
    # the batch may be of any size, and the rest follows
    flat = x.reshape(shape=[shape[0], groups, size(shape[1:]) // groups])
    return [y, *_statistics(call, flat, [2])]


_RUNNING: Final = ("running_mean", "running_var")


@RULES(
    "_native_batch_norm_legit.no_stats",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
)
def batch_norm(call: Call) -> Said:
    """By the statistics of the batch, which the running ones go towards; in evaluation by these."""
    x, weights = call.node("input"), _affine(call, call.shape("input")[1:2])
    stated: dict[str, Any] = {"axis": 1, "eps": _eps(call)}
    if not call.arguments.get("training", False):
        mean, variance = (call.node(name) for name in _RUNNING)
        kept = [call.value(name) for name in _RUNNING] if call.op.endswith("functional") else []
        return [x.batch_norm_given(mean, variance, *weights, **stated), None, None, *kept]
    statistics = _statistics(call, x, [axis for axis in range(call.rank("input")) if axis != 1])
    if not (call.asked(3) or call.asked(4)):
        return [x.batch_norm(*weights, **stated), *statistics, *[None] * (len(call.results) - 3)]
    mean, variance = (call.node(name) for name in _RUNNING)
    made = x.batch_norm_running(mean, variance, *weights, **stated, momentum=float(call["momentum"]))
    # no gradient goes through running statistics
    return [made.get_output(0), *statistics, *(made.get_output(i).stop_gradient() for i in (1, 2))]
