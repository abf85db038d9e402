"""Reductions over axes, and positions of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Summed


def _axes(call: Call) -> list[int]:
    return [int(axis) for axis in call.params["axes"]]


@RULES("reduce_sum")
def reduce_sum(call: Call) -> Results:
    """`sum`."""
    axes = _axes(call)
    if not axes:
        return call.operands[0]
    dtype = call.dtype() if call.is_float() else np.dtype(np.int64)
    result = call.results[0].with_node(call.cast(call.node().sum(axes=axes), dtype))
    if call.is_float():
        result.summed = Summed(call.node(), tuple(axes), (), size([call.shape()[axis] for axis in axes]))
    return result


@RULES("reduce_prod")
def reduce_prod(call: Call) -> Results:
    """`prod`."""
    dtype = call.dtype() if call.is_float() else np.dtype(np.int64)
    return call.cast(call.node().prod(axes=_axes(call)), dtype) if _axes(call) else call.operands[0]


def _reduction(op: str, boolean: str) -> Any:
    def rule(call: Call) -> Results:
        if not _axes(call):
            return call.operands[0]
        reduced: Node = call.graph.op(boolean if call.dtype().kind == "b" else op, call.node(), axes=_axes(call))
        return reduced

    rule.__doc__ = f"`{op}`." if op == boolean else f"`{op}`; for bools, `{boolean}`."
    return rule


for _name, _ops in {
    "reduce_max": ("max", "any"),
    "reduce_min": ("min", "all"),
    "reduce_or": ("any", "any"),
    "reduce_and": ("all", "all"),
}.items():
    RULES.put(_name, _reduction(*_ops))


@RULES("reduce_xor")
def reduce_xor(call: Call) -> Results:
    """For bools, whether an odd number is true: a `sum` modulo 2."""
    return call.node().sum(axes=_axes(call)).mod(call.constant(2, np.int64)).cast("bool")


@RULES("argmax", "argmin")
def arg_extreme(call: Call) -> Results:
    """`argmax` or `argmin`, cast from int64 to the requested dtype."""
    (axis,) = _axes(call)
    x = call.node().cast("uint8") if call.dtype().kind == "b" else call.node()
    return call.cast(call.graph.op(call.op, x, axis=axis), np.int64)
