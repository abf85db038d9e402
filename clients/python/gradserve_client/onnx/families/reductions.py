"""Reductions and accumulations, softmax, and sorting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import TO_THE_END, highest, lowest, outputs_of, size
from gradserve_client.onnx.call import Call, RuleResult, is_float
from gradserve_client.onnx.families.helpers import as_dtype, at_positions, summed_dtype
from gradserve_client.onnx.families.table import RULES


def _axes(call: Call) -> list[int]:
    """Return the axes to reduce. If none are stated, these are all axes, or none with `noop_with_empty_axes`."""
    stated = call.ints(1, "axes")
    rank = call.rank()
    if stated:
        return [axis % rank for axis in stated]
    return [] if call.attrs.get("noop_with_empty_axes") else [*range(rank)]


def _reduced(op: str, before: str | None, after: str | None) -> Any:
    def rule(call: Call) -> RuleResult:
        axes, dtype = _axes(call), call.dtype()
        if op in {"max", "min"} and not size([call.shape()[axis] for axis in axes]):
            neutral = lowest(dtype) if op == "max" else highest(dtype)
            return np.full(call.result_shape(), neutral, dtype)
        x = call.node()
        if before is not None:
            x = call.graph.op(before, x)
        y = call.graph.op(op, x, axes=axes, keepdims=bool(call.attrs["keepdims"])) if axes else x.identity()
        dtype_of_result = _reduced_dtype(op, dtype) if axes else dtype
        if after is None:
            return as_dtype(y, dtype_of_result, dtype)
        return as_dtype(call.graph.op(after, y), dtype_of_result if is_float(dtype_of_result) else np.float64, dtype)

    return rule


def _reduced_dtype(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the result of our op."""
    if op in {"max", "min"} or is_float(dtype):
        return dtype
    return summed_dtype(dtype) if op in {"sum", "prod"} else np.dtype(np.float64)


#: our reduction, and the elementwise ops before and after it
_PARTS: Final[Mapping[str, tuple[str, str | None, str | None]]] = {
    "ReduceSum": ("sum", None, None),
    "ReduceMean": ("mean", None, None),
    "ReduceMax": ("max", None, None),
    "ReduceMin": ("min", None, None),
    "ReduceProd": ("prod", None, None),
    "ReduceL1": ("sum", "abs", None),
    "ReduceSumSquare": ("sum", "square", None),
    "ReduceLogSum": ("sum", None, "log"),
    "ReduceLogSumExp": ("logsumexp", None, None),
}
for _name, _parts in _PARTS.items():
    RULES.put(_name, _reduced(*_parts), 1)


@RULES("ReduceL2")
def reduce_l2(call: Call) -> RuleResult:
    """Compute the Euclidean norm, or |x| if there are no axes to reduce."""
    axes, dtype = _axes(call), call.dtype()
    if not axes:
        return call.node().abs()
    return as_dtype(
        call.node().norm(axes=axes, keepdims=bool(call.attrs["keepdims"])),
        dtype if is_float(dtype) else np.float64,
        dtype,
    )


@RULES("ArgMax", "ArgMin")
def arg_extreme(call: Call) -> RuleResult:
    """Return the first position, or with `select_last_index` the last, which is the first of the flipped axis."""
    axis, op = call.axis(call.rank()), call.op.lower()
    keepdims = bool(call.attrs["keepdims"])
    if not call.attrs.get("select_last_index"):
        first: Node = call.graph.op(op, call.node(), axis=axis, keepdims=keepdims)
        return first
    last = call.graph.op(op, call.node().flip(axes=[axis]), axis=axis, keepdims=keepdims)
    return call.constant(call.shape()[axis] - 1, np.int64).sub(last)


@RULES("Softmax", "LogSoftmax", since=13)
def softmax(call: Call) -> RuleResult:
    """Compute the softmax, or its logarithm, along one axis."""
    return call.graph.op(
        {"Softmax": "softmax", "LogSoftmax": "log_softmax"}[call.op], call.node(), axis=call.axis(call.rank())
    )


@RULES("Hardmax", since=13)
def hardmax(call: Call) -> RuleResult:
    """Return 1 at the first maximum along the axis and 0 elsewhere."""
    axis, extent = call.axis(call.rank()), call.shape()[call.axis(call.rank())]
    order = [*range(call.rank() - 1)]
    order.insert(axis, call.rank() - 1)
    hot = call.node().argmax(axis).one_hot(extent, dtype=call.dtype().name)
    return hot.transpose(axes=order) if call.rank() > 1 else hot


@RULES("CumSum", since=11)
def cumsum(call: Call) -> RuleResult:
    """Compute cumulative sums from either end, with or without the entry itself."""
    return _accumulated(call, "cumsum", 0)


@RULES("CumProd", since=26)
def cumprod(call: Call) -> RuleResult:
    """Compute cumulative products from either end, with or without the entry itself."""
    return _accumulated(call, "cumprod", 1)


def _accumulated(call: Call, op: str, neutral: int) -> RuleResult:
    """Accumulate along an axis. `exclusive` shifts the result by one entry and puts the neutral element first."""
    axis = int(call.static(1, "axis").reshape(-1)[0]) % call.rank()
    extent, dtype, reverse = call.shape()[axis], call.dtype(), bool(call.attrs["reverse"])
    y = call.graph.op(op, call.node(), axis=axis, reverse=True if reverse else None)
    y = as_dtype(y, summed_dtype(dtype), dtype)
    if not call.attrs["exclusive"] or not extent:
        return y
    edge = call.constant(np.full([1 if i == axis else each for i, each in enumerate(call.shape())], neutral), dtype)
    if reverse:
        return call.graph.cat(y.slice(starts=[0] * axis + [1]), edge, axis=axis)
    return call.graph.cat(edge, y.slice(stops=[TO_THE_END] * axis + [extent - 1]), axis=axis)


@RULES("TopK")
def topk(call: Call) -> RuleResult:
    """Return the largest entries, or the smallest by sorting. Equal entries keep the order of their positions."""
    axis = call.axis(call.rank())
    k = int(call.static(1, "count").reshape(-1)[0]) if call.has(1) else int(call.attrs["k"])
    if call.attrs.get("largest", 1):
        return outputs_of(call.node().topk(k, axis=axis), 2)
    positions = call.node().argsort(axis)
    first = at_positions(positions, range(k), axis)
    return [call.node().take_along(first, axis=axis), first]


@RULES("LpNormalization")
def lp_normalization(call: Call) -> RuleResult:
    """Compute x / ‖x‖ along the axis, and 0 if the norm is 0."""
    axis, x = call.axis(call.rank()), call.node()
    if call.attrs["p"] not in {1, 2}:
        raise Blocked(f"ONNX defines no norm of order {call.attrs['p']}")
    norm = x.norm(axes=[axis], keepdims=True) if call.attrs["p"] == 2 else x.abs().sum(axes=[axis], keepdims=True)
    zero = norm.equal(call.like(0))
    return x.div(zero.where(call.like(1), norm))


@RULES("MeanVarianceNormalization", since=9)
def mean_variance(call: Call) -> RuleResult:
    """Compute (x − mean) / (σ + 1e-9), as ONNX's function does."""
    axes = [axis % call.rank() for axis in call.attrs["axes"]]
    x = call.node()
    deviation = x.sub(x.mean(axes=axes, keepdims=True))
    return deviation.div(x.var(axes=axes, keepdims=True).sqrt().add_scalar(1e-9))
