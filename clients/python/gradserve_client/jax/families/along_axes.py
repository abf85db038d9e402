"""What accumulates or sorts along an axis."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import several
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.table import RULES


@RULES("cumsum")
def cumsum(call: Call) -> Said:
    """`cumsum`, of the entries turned round where it goes backwards."""
    # `reverse` is an attribute since opset 2, which a graph of this op alone does without
    axis, backwards = int(call.params["axis"]), bool(call.params["reverse"])
    x = call.node().flip(axes=[axis]) if backwards else call.node()
    summed = call.cast(x.cumsum(axis), call.dtype() if call.is_float() else np.int64)
    return summed.flip(axes=[axis]) if backwards else summed


@RULES("cumprod")
def cumprod(call: Call) -> Said:
    """`cumprod`."""
    return call.cast(_run(call), call.dtype() if call.is_float() else np.int64)


@RULES("cumlogsumexp")
def cumlogsumexp(call: Call) -> Said:
    """`cumlogsumexp`."""
    return _run(call)


def _run(call: Call) -> Node:
    """The op of the primitive's name, along its axis."""
    made: Node = call.graph.op(
        call.op, call.node(), axis=int(call.params["axis"]), reverse=True if call.params["reverse"] else None
    )
    return made


def _extreme(combine: Any) -> Any:
    def say(call: Call) -> Said:
        if not call.is_float():
            return _run(call)
        axis, reverse = int(call.params["axis"]), bool(call.params["reverse"])
        return call.expanded(partial(jax.lax.associative_scan, combine, axis=axis, reverse=reverse), call.operands[0])

    say.__doc__ = "The op of this name; of floats `associative_scan`, by which JAX differentiates it: ties share."
    return say


RULES.put("cummax", _extreme(jax.lax.max))
RULES.put("cummin", _extreme(jax.lax.min))


@RULES("sort")
def sort(call: Call) -> Said:
    """`sort`; of several operands the order of the first ones, by `argsort`, and `take_along` of all."""
    axis, keys = int(call.params["dimension"]), int(call.params["num_keys"])
    if len(call.operands) == 1:
        return [_sorted(call, axis)]
    order = _order(call, axis, keys)
    return [node.take_along(order, axis=axis) for node in call.nodes]


def _sorted(call: Call, axis: int) -> Node:
    if call.dtype().kind == "b":
        return call.node().cast("uint8").sort(axis).cast("bool")
    return call.node().sort(axis)


def _order(call: Call, axis: int, keys: int) -> Node:
    """The order by the first operands: by the last of them at first, and then by the others, which keep that."""
    order: Node | None = None
    for i in reversed(range(keys)):
        key = call.node(i).cast("uint8") if call.dtype(i).kind == "b" else call.node(i)
        found = (key if order is None else key.take_along(order, axis=axis)).argsort(axis)
        order = found if order is None else order.take_along(found, axis=axis)
    assert order is not None, "it sorts by something"
    return order


@RULES("top_k")
def top_k(call: Call) -> Said:
    """`topk`, whose positions are int64, in the dtype that is stated."""
    axis = int(call.params.get("axis", -1)) % call.rank()
    values, positions = several(call.node().topk(int(call.params["k"]), axis=axis), 2)
    return [values, call.cast(positions, np.int64, 1)]
