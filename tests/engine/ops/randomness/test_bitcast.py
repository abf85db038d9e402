"""Bitcasts keep the bits and share the memory, for every pair of widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.compiler.plan import Plan, make_plan
from engine.ops.randomness.threefry import bitcast
from tests.engine.ops.run import EXECUTOR

X = np.arange(2**63 - 6, 2**63 + 6, dtype="uint64").view("uint32")


def bitcast_plan(x: Any, dtype: str, *, transposed: bool = False) -> tuple[Plan, Any]:
    """The plan that bitcasts x + 0, or the transpose of x, and its result."""
    builder = Builder(registry())
    value = builder.leaf(TensorType.of(x), 0)
    value = value.transpose(axes=(1, 0)) if transposed else value + value.full_like(0)
    plan = make_plan(builder.graph([bitcast(value, np.dtype(dtype))]), Limits())
    (result,) = EXECUTOR.run(plan, {0: x})
    return plan, result


each_cast = pytest.mark.parametrize(
    ("shape", "dtype", "wanted"),
    [
        ((4, 6), "float32", (4, 6)),
        ((4, 3, 2), "float64", (4, 3)),
        ((4, 3, 2), "int64", (4, 3)),
        ((12, 2), "float64", (12,)),
        ((24,), "uint8", (24, 4)),
        ((0, 2), "float64", (0,)),
    ],
)


@each_cast
def test_result_type(shape: tuple[int, ...], dtype: str, wanted: tuple[int, ...]) -> None:
    value = bitcast(Builder(registry()).leaf(TensorType(shape, X.dtype), 0), np.dtype(dtype))
    assert value.type == TensorType(wanted, np.dtype(dtype))


@each_cast
def test_elements_match_numpy_view(shape: tuple[int, ...], dtype: str, wanted: tuple[int, ...]) -> None:
    x = X[: int(np.prod(shape))].reshape(shape)
    plan, actual = bitcast_plan(x, dtype)
    assert (actual.shape, actual.dtype, actual.tobytes()) == (wanted, dtype, x.tobytes())
    assert "bitcast" not in {step.op.name for step in plan.steps if step.places}


def test_scalar_gets_an_axis_of_words() -> None:
    assert bitcast_plan(np.array(2**33 + 5), "uint32")[1].tolist() == [5, 2]
    assert bitcast_plan(np.array(7, "uint32"), "int32")[1].tolist() == 7


def test_transposed_input_is_copied() -> None:
    x = X.reshape(2, 12)
    for dtype, expected in (("float32", x.T.copy().view("float32")), ("float64", x.T.copy().view("float64")[:, 0])):
        assert bitcast_plan(x, dtype, transposed=True)[1].tobytes() == expected.tobytes()
