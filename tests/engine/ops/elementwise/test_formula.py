"""Formulas of neural networks: float16 is computed in float32 and rounded once; other dtypes stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.graph import Value
from engine.ir.tensor_type import TensorType
from engine.ops.elementwise.base import Formula
from tests.engine.ops.values import written

RNG = np.random.default_rng(14)


class Distance(Formula):
    """√(a² + b²): the sum overflows float16 from 256 on, and the root does not."""

    name = "distance_of_a_test"
    operands = ("a", "b")

    def infer(self, *types: TensorType, **attrs: Any) -> TensorType:
        """The type of a."""
        return types[0]

    def formula(self, *operands: Value, **attrs: Any) -> Value:
        """The root of the sum."""
        a, b = operands
        assert "float16" not in (a.dtype, b.dtype)
        return (a.square() + b.square()).sqrt()


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("float16", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("float64", "float16", "float64"),
        ("float32", "float32", "float32"),
        ("float16", "int32", "float16"),
        ("int32", "float64", "float64"),
    ],
)
def test_result_has_the_common_float_dtype(a: str, b: str, result: str) -> None:
    x, y = (RNG.uniform(1, 9, 3).astype(dtype) for dtype in (a, b))
    (value,), (actual,) = written(lambda *values: Distance().compose(*values), x, y)
    assert value.dtype == actual.dtype == result
    np.testing.assert_allclose(actual, np.hypot(x.astype(float), y.astype(float)), 2 * float(np.finfo(result).eps))


def test_float16_is_rounded_once_without_overflow() -> None:
    x = RNG.uniform(300, 30_000, 2000).astype("float16")
    _, (actual,) = written(lambda *values: Distance().compose(*values), x, x)
    exact = np.hypot(x.astype("float32"), x.astype("float32"))
    assert np.isfinite(actual).all()
    np.testing.assert_array_equal(actual, exact.astype("float16"))


def test_no_casts_without_float16() -> None:
    (value,), _ = written(lambda *values: Distance().compose(*values), np.ones(2), np.ones(2, "float32"))
    ops = [node.op.name for node in value.builder.nodes]
    assert "cast" not in ops
