"""Sums and the like over axes, and positions of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Summed


def _axes(call: Call) -> list[int]:
    return [int(axis) for axis in call.params["axes"]]


@RULES("reduce_sum")
def reduce_sum(call: Call) -> Said:
    """`sum`."""
    axes = _axes(call)
    if not axes:
        return call.operands[0]
    found = call.dtype() if call.is_float() else np.dtype(np.int64)
    made = call.results[0].with_node(call.cast(call.node().sum(axes=axes), found))
    if call.is_float():
        made.summed = Summed(call.node(), tuple(axes), (), size([call.shape()[axis] for axis in axes]))
    return made


@RULES("reduce_prod")
def reduce_prod(call: Call) -> Said:
    """`prod`."""
    found = call.dtype() if call.is_float() else np.dtype(np.int64)
    return call.cast(call.node().prod(axes=_axes(call)), found) if _axes(call) else call.operands[0]


def _reduced(op: str, boolean: str) -> Any:
    def say(call: Call) -> Said:
        if not _axes(call):
            return call.operands[0]
        made: Node = call.graph.op(boolean if call.dtype().kind == "b" else op, call.node(), axes=_axes(call))
        return made

    say.__doc__ = f"`{op}`." if op == boolean else f"`{op}`; of bools, `{boolean}`."
    return say


for _name, _ops in {
    "reduce_max": ("max", "any"),
    "reduce_min": ("min", "all"),
    "reduce_or": ("any", "any"),
    "reduce_and": ("all", "all"),
}.items():
    RULES.put(_name, _reduced(*_ops))


@RULES("reduce_xor")
def reduce_xor(call: Call) -> Said:
    """Of bools, whether an odd number is true."""
    return call.node().sum(axes=_axes(call)).mod(call.constant(2, np.int64)).cast("bool")


@RULES("argmax", "argmin")
def arg_extreme(call: Call) -> Said:
    """`argmax` or `argmin`, which are int64, in the dtype that is stated."""
    (axis,) = _axes(call)
    x = call.node().cast("uint8") if call.dtype().kind == "b" else call.node()
    return call.cast(call.graph.op(call.op, x, axis=axis), np.int64)
