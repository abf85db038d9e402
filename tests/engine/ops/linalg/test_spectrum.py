"""Inverse gaps between values that may coincide: omitted gaps and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.ir.graph import ancestors
from engine.ops.linalg.matrices import (
    empty_gradient,
    hermitian_part,
    inverse_gaps,
    off_diagonal_gaps,
    scaled_columns,
    tolerance,
)
from tests.engine.ops.matrices import evaluate, gradient_of_sum

VALUES = np.array([[1.0, 2.0, 4.0], [1.0, 1.0 + 1e-15, 4.0], [0.0, 0.0, 0.0]])


def gaps(values: Value, degenerate: str) -> Value:
    return off_diagonal_gaps(values, tolerance(values, 3), degenerate)


def test_gaps_of_distinct_values() -> None:
    (actual,) = evaluate(lambda v: [gaps(v, "nan")], VALUES)
    np.testing.assert_array_equal(actual[0], [[0, 1, 1 / 3], [-1, 0, 0.5], [-1 / 3, -0.5, 0]])


def test_gaps_of_equal_values() -> None:
    for degenerate, filled in (("nan", np.nan), ("whole", 0.0)):
        (actual,) = evaluate(lambda v, d=degenerate: [gaps(v, d)], VALUES)
        np.testing.assert_array_equal(actual[1, [0, 1], [1, 0]], [filled, filled])
        np.testing.assert_allclose(actual[1, 0, 2], 1 / 3)
        np.testing.assert_array_equal(actual[2], np.where(np.eye(3), 0, filled))


def test_omitted_gap_has_nan_derivative() -> None:
    def gradients(v: Value) -> list[Value]:
        total = (gaps(v, "whole") * v.builder.constant(np.triu(np.ones((3, 3))))).sum()
        return vjp_or_zeros(v.builder, [(total, total.full_like(1.0))], [v])

    (actual,) = evaluate(gradients, VALUES)
    np.testing.assert_allclose(actual[0], np.array([1 + 1 / 9, -1 + 1 / 4, -1 / 9 - 1 / 4]))
    assert np.isnan(actual[1, :2]).all()
    assert np.isfinite(actual[1, 2])
    assert np.isnan(actual[2]).all()


def test_included_gaps_are_differentiated() -> None:
    x = np.array([1.0, 2.0, 0.0])
    np.testing.assert_allclose(
        gradient_of_sum(lambda v: inverse_gaps(v, v.abs() <= 0.5, "whole").slice(stops=(2,)), x)[:2], [-1, -0.25]
    )


@pytest.mark.parametrize(("dtype", "eps"), [("float32", 2**-23), ("float64", 2**-52)])
def test_tolerance_for_equality(dtype: str, eps: float) -> None:
    (actual,) = evaluate(lambda v: [tolerance(v, 5)], np.array([[-3.0, 1.0], [0.0, 0.0]], dtype))
    np.testing.assert_allclose(actual, np.array([[16 * 5 * eps * 3], [0.0]]))


def test_hermitian_part_and_scaled_columns() -> None:
    x = np.array([[1.0, 2.0], [4.0, 8.0]])
    (symmetric,) = evaluate(lambda v: [hermitian_part(v)], x)
    np.testing.assert_array_equal(symmetric, [[1, 3], [3, 8]])
    (scaled,) = evaluate(lambda v, factors: [scaled_columns(v, factors)], x, np.array([1.0, 10.0]))
    np.testing.assert_array_equal(scaled, [[1, 20], [4, 80]])


def test_gaps_of_a_batch_of_spectra() -> None:
    """The numbers of values and of spectra differ, with one more batch axis."""
    values = np.array([[[1.0, 2.0]], [[3.0, 7.0]], [[0.0, -4.0]]])
    (actual,) = evaluate(lambda v: [off_diagonal_gaps(v, tolerance(v, 2), "nan")], values)
    between = 1 / (values[..., 1] - values[..., 0])
    np.testing.assert_array_equal(actual[..., 0, 1], between)
    np.testing.assert_array_equal(actual[..., 1, 0], -between)
    (scaled,) = evaluate(lambda v, factors: [scaled_columns(v, factors)], np.ones((3, 1, 4, 2)), values)
    np.testing.assert_array_equal(scaled, np.broadcast_to(values[..., None, :], (3, 1, 4, 2)))


def test_empty_gradient_reads_all_cotangents() -> None:
    """Gradient of an empty tensor: zeros that read all arriving cotangents; None without any."""
    x, first, second = np.ones((0, 2)), np.full(3, 2.0), np.full((), 5.0)
    actual = evaluate(lambda v, a, b: [empty_gradient(v, [None, a, None, b]) or v], x, first, second)
    assert actual[0].shape == (0, 2)
    builder = Builder(registry())
    v, a, b = (builder.leaf(TensorType.of(each), i) for i, each in enumerate((x, first, second)))
    gradient = empty_gradient(v, [a, None, b])
    assert gradient is not None
    assert {a.index, b.index} <= set(ancestors([gradient.index], lambda i: builder.nodes[i].operands))
    assert empty_gradient(v, [None, None]) is None
    # on a tensor that is not empty it is zero times the sum of the cotangents
    (zeros,) = evaluate(lambda v, a: [empty_gradient(v, [a]) or v], np.ones(2), np.array([1.0, np.inf]))
    assert np.isnan(zeros).all()
    (zeros,) = evaluate(lambda v, a: [empty_gradient(v, [a]) or v], np.ones(2), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(zeros, [0.0, 0.0])
