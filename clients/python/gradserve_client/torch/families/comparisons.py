"""Comparisons, logic and selection."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.helpers import common_dtype
from gradserve_client.torch.families.table import RULES

_COMPARED: Final = {
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "ne": "not_equal",
}
_LOGIC: Final = {"logical_and": "logical_and", "logical_or": "logical_or"}


def _comparison(op: str) -> Any:
    def rule(call: Call) -> Results:
        return call.graph.op(op, *call.broadcast_nodes(["self", "other"], common_dtype(call, ["self", "other"])))

    return rule


for _name, _op in _COMPARED.items():
    RULES.put(f"{_name}.Tensor", _comparison(_op))
    RULES.put(f"{_name}.Scalar", _comparison(_op))


@RULES(*_LOGIC)
def logic(call: Call) -> Results:
    """Write a logical op. Numbers other than 0 are true."""
    return call.graph.op(call.op, *call.broadcast_nodes(["self", "other"], common_dtype(call, ["self", "other"])))


@RULES("logical_xor")
def logical_xor(call: Call) -> Results:
    """Return whether exactly one operand is true."""
    a, b = call.broadcast_nodes(["self", "other"], "bool")
    return a.not_equal(b)


@RULES("logical_not")
def logical_not(call: Call) -> Results:
    """Return whether the operand is 0."""
    return call.node().logical_not()


@RULES("isnan")
def isnan(call: Call) -> Results:
    """Return whether an element differs from itself."""
    return call.node().not_equal(call.node())


@RULES("isinf")
def isinf(call: Call) -> Results:
    """Return whether an element is ±∞, which integers never are."""
    if not call.value().type.is_float:
        return call.node().not_equal(call.node())
    return call.node().abs().equal(call.constant(np.inf, call.dtype()))


@RULES("where.self", "where.ScalarOther", "where.ScalarSelf")
def where(call: Call) -> Results:
    """Select element by element."""
    return call.node("condition").where(*call.broadcast_nodes(["self", "other"], call.result.dtype, ()))


@RULES("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(call: Call) -> Results:
    """Write a number where the mask is true."""
    value, x = call.broadcast_nodes(["value", "self"], call.result.dtype, ())
    return call.node("mask").where(value, x)
