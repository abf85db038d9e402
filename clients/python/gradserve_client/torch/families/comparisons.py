"""Comparisons, logic, choices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradserve_client.torch.call import Call, Said
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


def _compared(op: str) -> Any:
    def say(call: Call) -> Said:
        return call.graph.op(op, *call.together(["self", "other"], common_dtype(call, ["self", "other"])))

    return say


for _name, _op in _COMPARED.items():
    RULES.put(f"{_name}.Tensor", _compared(_op))
    RULES.put(f"{_name}.Scalar", _compared(_op))


@RULES(*_LOGIC)
def logic(call: Call) -> Said:
    """Of what is not 0."""
    return call.graph.op(call.op, *call.together(["self", "other"], common_dtype(call, ["self", "other"])))


@RULES("logical_xor")
def logical_xor(call: Call) -> Said:
    """Whether one of them is 0, and not both."""
    a, b = call.together(["self", "other"], "bool")
    return a.not_equal(b)


@RULES("logical_not")
def logical_not(call: Call) -> Said:
    """Whether it is 0."""
    return call.node().logical_not()


@RULES("isnan")
def isnan(call: Call) -> Said:
    """What differs from itself."""
    return call.node().not_equal(call.node())


@RULES("isinf")
def isinf(call: Call) -> Said:
    """Infinities of both signs; of whole numbers none."""
    if not call.value().type.is_float:
        return call.node().not_equal(call.node())
    return call.node().abs().equal(call.constant(np.inf, call.dtype()))


@RULES("where.self", "where.ScalarOther", "where.ScalarSelf")
def where(call: Call) -> Said:
    """Chosen element by element."""
    return call.node("condition").where(*call.together(["self", "other"], call.result.dtype, ()))


@RULES("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(call: Call) -> Said:
    """A number where the mask holds."""
    value, x = call.together(["value", "self"], call.result.dtype, ())
    return call.node("mask").where(value, x)
