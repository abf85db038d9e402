"""Means and variances taken out, and running statistics."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Result, Said, blocked_unless
from gradserve_client.torch.families.table import RULES


def _eps(call: Call) -> float:
    eps = float(call["eps"])
    blocked_unless(eps > 0, f"its eps is {eps}, which has to be positive")
    return eps


@RULES("native_layer_norm")
def layer_norm(call: Call) -> Said:
    """Over the last axes."""
    count = len(call["normalized_shape"])
    axes, x = [*range(call.rank("input") - count, call.rank("input"))], call.node("input")
    weight, bias = call.node_or_none("weight"), call.node_or_none("bias")
    if weight is None and bias is not None:
        y = x.layer_norm(axes=axes, eps=_eps(call)).add(bias)
    else:
        y = x.layer_norm(weight, bias, axes=axes, eps=_eps(call))
    return [y, *_statistics(call, x, axes)]


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
    weight, bias = call.node_or_none("weight"), call.node_or_none("bias")
    if weight is None and bias is not None:
        y = _affine(call, x.group_norm(groups=groups, eps=_eps(call)), shape[1], len(shape))
    else:
        y = x.group_norm(weight, bias, groups=groups, eps=_eps(call))
    if not (call.asked(1) or call.asked(2)):
        return [y, None, None]
    # the batch may be of any size, and the rest follows
    flat = x.reshape(shape=[shape[0], groups, size(shape[1:]) // groups])
    return [y, *_statistics(call, flat, [2])]


def _affine(call: Call, y: Node, channels: int, rank: int) -> Node:
    spread = [channels, *[1] * (rank - 2)]
    if call.has("weight"):
        y = y.mul(call.node("weight").reshape(shape=spread))
    return y.add(call.node("bias").reshape(shape=spread)) if call.has("bias") else y


@RULES(
    "_native_batch_norm_legit.no_stats",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
)
def batch_norm(call: Call) -> Said:
    """By the statistics of the batch, which the running ones go towards; in evaluation by these."""
    if not call.arguments.get("training", False):
        return [_by_running(call), None, None, *_unchanged(call)]
    x = call.node("input")
    weight, bias = call.node_or_none("weight"), call.node_or_none("bias")
    axes = [axis for axis in range(call.rank("input")) if axis != 1]
    if weight is None and bias is not None:
        y = x.batch_norm(axis=1, eps=_eps(call)).add(bias.reshape(shape=[-1, *[1] * (call.rank("input") - 2)]))
    else:
        y = x.batch_norm(weight, bias, axis=1, eps=_eps(call))
    return [y, *_statistics(call, x, axes), *_running(call, x, axes)]


def _by_running(call: Call) -> Node:
    x, mean, variance = (call.node(name) for name in ("input", *_RUNNING))
    weight, bias = call.node_or_none("weight"), call.node_or_none("bias")
    if weight is None and bias is not None:
        y = x.batch_norm_given(mean, variance, axis=1, eps=_eps(call))
        return _affine(call, y, call.shape("input")[1], call.rank("input"))
    return x.batch_norm_given(mean, variance, weight, bias, axis=1, eps=_eps(call))


_RUNNING = ("running_mean", "running_var")


def _unchanged(call: Call) -> list[Result]:
    return [call.value(name) for name in _RUNNING] if call.op.endswith("functional") else []


def _running(call: Call, x: Node, axes: Sequence[int]) -> list[Result]:
    """The new running statistics, which no gradient goes through; the variance is the unbiased one."""
    if not call.op.endswith("functional"):
        return []
    fixed, momentum = x.stop_gradient(), float(call["momentum"])
    batch = (fixed.mean(axes=axes), fixed.var(axes=axes, ddof=1))
    return [
        call.node(name).mul_scalar(1 - momentum).add(each.mul_scalar(momentum))
        for name, each in zip(_RUNNING, batch, strict=True)
    ]
