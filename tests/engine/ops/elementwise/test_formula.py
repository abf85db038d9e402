"""Formulas of networks: float16 is computed in float32 and rounded once, and other dtypes stay what they are."""

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
    """a² + b², by which float16 is left from 256 on, and its root, which comes back."""

    name = "distance_of_a_test"
    operands = ("a", "b")

    def infer(self, *types: TensorType, **attrs: Any) -> TensorType:
        """As a."""
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
def test_the_result_has_the_common_dtype_of_the_floats(a: str, b: str, result: str) -> None:
    x, y = (RNG.uniform(1, 9, 3).astype(dtype) for dtype in (a, b))
    (value,), (found,) = written(lambda *values: Distance().compose(*values), x, y)
    assert value.dtype == found.dtype == result
    np.testing.assert_allclose(found, np.hypot(x.astype(float), y.astype(float)), 2 * float(np.finfo(result).eps))


def test_float16_is_rounded_once_and_nothing_leaves_its_range() -> None:
    x = RNG.uniform(300, 30_000, 2000).astype("float16")
    _, (found,) = written(lambda *values: Distance().compose(*values), x, x)
    exact = np.hypot(x.astype("float32"), x.astype("float32"))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, exact.astype("float16"))


def test_nothing_is_cast_where_there_is_no_float16() -> None:
    (value,), _ = written(lambda *values: Distance().compose(*values), np.ones(2), np.ones(2, "float32"))
    ops = [node.op.name for node in value.builder.nodes]
    assert "cast" not in ops
