"""Bits seen as another dtype are the same bits, in the same memory, whatever the widths are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.compiler.plan import Plan, make_plan
from engine.ops.randomness.threefry import bitcast
from tests.engine.ops.run import EXECUTOR

X = np.arange(2**63 - 6, 2**63 + 6, dtype="uint64").view("uint32")


def seen(x: Any, dtype: str, *, turned: bool = False) -> tuple[Plan, Any]:
    """The plan of the bits of x + 0, and these; of its transpose, where that is asked for."""
    builder = Builder(registry())
    value = builder.leaf(TensorType.of(x), 0)
    value = value.transpose(axes=(1, 0)) if turned else value + value.full_like(0)
    plan = make_plan(builder.graph([bitcast(value, np.dtype(dtype))]), Limits())
    (found,) = EXECUTOR.run(plan, {0: x})
    return plan, found


SEEN = pytest.mark.parametrize(
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


@SEEN
def test_a_type_says_how_elements_are_seen(shape: tuple[int, ...], dtype: str, wanted: tuple[int, ...]) -> None:
    value = bitcast(Builder(registry()).leaf(TensorType(shape, X.dtype), 0), np.dtype(dtype))
    assert value.type == TensorType(wanted, np.dtype(dtype))


@SEEN
def test_elements_are_as_numpy_sees_the_memory(shape: tuple[int, ...], dtype: str, wanted: tuple[int, ...]) -> None:
    x = X[: int(np.prod(shape))].reshape(shape)
    plan, found = seen(x, dtype)
    assert (found.shape, found.dtype, found.tobytes()) == (wanted, dtype, x.tobytes())
    assert "bitcast" not in {step.op.name for step in plan.steps if step.places}


def test_a_number_has_an_axis_of_words() -> None:
    assert seen(np.array(2**33 + 5), "uint32")[1].tolist() == [5, 2]
    assert seen(np.array(7, "uint32"), "int32")[1].tolist() == 7


def test_what_lies_askew_is_copied() -> None:
    x = X.reshape(2, 12)
    for dtype, wanted in (("float32", x.T.copy().view("float32")), ("float64", x.T.copy().view("float64")[:, 0])):
        assert seen(x, dtype, turned=True)[1].tobytes() == wanted.tobytes()
