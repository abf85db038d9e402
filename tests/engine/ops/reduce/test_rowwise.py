"""Rows of elements: the axes that they span, and the divisor of their formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.ir.tensor_type import TensorType
from engine.ops.reduce.sums import Rowwise


def extent(op: str, shape: tuple[int, ...], dtype: str = "float64", **attrs: Any) -> int:
    definition = registry().ops[op]
    assert isinstance(definition, Rowwise)
    x = TensorType(shape, np.dtype(dtype))
    complete = definition.canonical({**{k: a.default for k, a in definition.attrs.items()}, **attrs}, x)
    out = definition.infer(x, **complete)
    return definition.row_extent(out, x, complete)


@pytest.mark.parametrize(
    ("op", "attrs", "wanted"),
    [("sum", {"axes": [2]}, 5), ("sum", {"axes": [1, 2]}, 20), ("sum", {"axes": None}, 60), ("sum", {"axes": [1]}, 0),
     ("max", {"axes": [-1], "keepdims": True}, 5), ("softmax", {"axis": -1}, 5), ("softmax", {"axis": 0}, 0),
     ("mean", {"axes": [0, 2]}, 0)],
)  # fmt: skip
def test_row_extent(op: str, attrs: dict[str, Any], wanted: int) -> None:
    assert extent(op, (3, 4, 5), **attrs) == wanted
    assert extent(op, (3, 4, 5), "float16", **attrs) == 0
    if op == "sum":
        assert extent(op, (3, 4, 5), "int8", **attrs) == 0  # accumulates in int64


def test_divisor() -> None:
    ops = {name: registry().ops[name] for name in ("mean", "sum", "max")}
    divisors = {name: op.divisor(7) for name, op in ops.items() if isinstance(op, Rowwise)}
    assert (divisors["mean"], divisors["max"]) == (7.0, None)
