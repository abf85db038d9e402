"""Cumulative reductions and sorting along an axis."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import outputs_of
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES


@RULES("cumsum")
def cumsum(call: Call) -> Results:
    """`cumsum`, with a `flip` before and after if it is reversed."""
    # the attribute `reverse` would require opset 2
    axis, reverse = int(call.params["axis"]), bool(call.params["reverse"])
    x = call.node().flip(axes=[axis]) if reverse else call.node()
    summed = call.cast(x.cumsum(axis), call.dtype() if call.is_float() else np.int64)
    return summed.flip(axes=[axis]) if reverse else summed


@RULES("cumprod")
def cumprod(call: Call) -> Results:
    """`cumprod`."""
    return call.cast(_cumulate(call), call.dtype() if call.is_float() else np.int64)


@RULES("cumlogsumexp")
def cumlogsumexp(call: Call) -> Results:
    """`cumlogsumexp`."""
    return _cumulate(call)


def _cumulate(call: Call) -> Node:
    """Write the op of the primitive's name along its axis."""
    cumulated: Node = call.graph.op(
        call.op, call.node(), axis=int(call.params["axis"]), reverse=True if call.params["reverse"] else None
    )
    return cumulated


def _extreme(combine: Any) -> Any:
    def rule(call: Call) -> Results:
        if not call.is_float():
            return _cumulate(call)
        axis, reverse = int(call.params["axis"]), bool(call.params["reverse"])
        return call.expand(partial(jax.lax.associative_scan, combine, axis=axis, reverse=reverse), call.operands[0])

    rule.__doc__ = "The op of this name. For floats, `associative_scan`: as in JAX, ties share the gradient."
    return rule


RULES.put("cummax", _extreme(jax.lax.max))
RULES.put("cummin", _extreme(jax.lax.min))


@RULES("sort")
def sort(call: Call) -> Results:
    """`sort`; for several operands, `argsort` of the keys and `take_along` of all operands."""
    axis, keys = int(call.params["dimension"]), int(call.params["num_keys"])
    if len(call.operands) == 1:
        return [_sort(call, axis)]
    order = _order(call, axis, keys)
    return [node.take_along(order, axis=axis) for node in call.nodes]


def _sort(call: Call, axis: int) -> Node:
    if call.dtype().kind == "b":
        return call.node().cast("uint8").sort(axis).cast("bool")
    return call.node().sort(axis)


def _order(call: Call, axis: int, keys: int) -> Node:
    """Return the order that sorts by the first operands: stable sorts by one key each, the last key first."""
    order: Node | None = None
    for i in reversed(range(keys)):
        key = call.node(i).cast("uint8") if call.dtype(i).kind == "b" else call.node(i)
        permutation = (key if order is None else key.take_along(order, axis=axis)).argsort(axis)
        order = permutation if order is None else order.take_along(permutation, axis=axis)
    assert order is not None, "it sorts by something"
    return order


@RULES("top_k")
def top_k(call: Call) -> Results:
    """`topk`, with positions cast from int64 to the requested dtype."""
    axis = int(call.params.get("axis", -1)) % call.rank()
    values, positions = outputs_of(call.node().topk(int(call.params["k"]), axis=axis), 2)
    return [values, call.cast(positions, np.int64, 1)]
