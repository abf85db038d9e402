"""Gaps that may be 0: what is left out, and that its derivative says so."""

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
from tests.engine.ops.matrices import evaluate, slope

VALUES = np.array([[1.0, 2.0, 4.0], [1.0, 1.0 + 1e-15, 4.0], [0.0, 0.0, 0.0]])


def gaps(values: Value, degenerate: str) -> Value:
    return off_diagonal_gaps(values, tolerance(values, 3), degenerate)


def test_gaps_of_values_that_differ() -> None:
    (found,) = evaluate(lambda v: [gaps(v, "nan")], VALUES)
    np.testing.assert_array_equal(found[0], [[0, 1, 1 / 3], [-1, 0, 0.5], [-1 / 3, -0.5, 0]])


def test_gaps_of_equal_values() -> None:
    for degenerate, filled in (("nan", np.nan), ("whole", 0.0)):
        (found,) = evaluate(lambda v, d=degenerate: [gaps(v, d)], VALUES)
        np.testing.assert_array_equal(found[1, [0, 1], [1, 0]], [filled, filled])
        np.testing.assert_allclose(found[1, 0, 2], 1 / 3)
        np.testing.assert_array_equal(found[2], np.where(np.eye(3), 0, filled))


def test_a_gap_that_is_left_out_has_no_derivative() -> None:
    def slopes(v: Value) -> list[Value]:
        found = (gaps(v, "whole") * v.builder.constant(np.triu(np.ones((3, 3))))).sum()
        return vjp_or_zeros(v.builder, [(found, found.full_like(1.0))], [v])

    (found,) = evaluate(slopes, VALUES)
    np.testing.assert_allclose(found[0], np.array([1 + 1 / 9, -1 + 1 / 4, -1 / 9 - 1 / 4]))
    assert np.isnan(found[1, :2]).all()
    assert np.isfinite(found[1, 2])
    assert np.isnan(found[2]).all()


def test_what_is_not_left_out_is_differentiated() -> None:
    x = np.array([1.0, 2.0, 0.0])
    np.testing.assert_allclose(
        slope(lambda v: inverse_gaps(v, v.abs() <= 0.5, "whole").slice(stops=(2,)), x)[:2], [-1, -0.25]
    )


@pytest.mark.parametrize(("dtype", "eps"), [("float32", 2**-23), ("float64", 2**-52)])
def test_how_close_is_equal(dtype: str, eps: float) -> None:
    (found,) = evaluate(lambda v: [tolerance(v, 5)], np.array([[-3.0, 1.0], [0.0, 0.0]], dtype))
    np.testing.assert_allclose(found, np.array([[16 * 5 * eps * 3], [0.0]]))


def test_parts_and_columns() -> None:
    x = np.array([[1.0, 2.0], [4.0, 8.0]])
    (even,) = evaluate(lambda v: [hermitian_part(v)], x)
    np.testing.assert_array_equal(even, [[1, 3], [3, 8]])
    (scaled,) = evaluate(lambda v, by: [scaled_columns(v, by)], x, np.array([1.0, 10.0]))
    np.testing.assert_array_equal(scaled, [[1, 20], [4, 80]])


def test_of_several_spectra_each_has_gaps() -> None:
    """Of other numbers of values than of spectra, along one more axis."""
    values = np.array([[[1.0, 2.0]], [[3.0, 7.0]], [[0.0, -4.0]]])
    (found,) = evaluate(lambda v: [off_diagonal_gaps(v, tolerance(v, 2), "nan")], values)
    between = 1 / (values[..., 1] - values[..., 0])
    np.testing.assert_array_equal(found[..., 0, 1], between)
    np.testing.assert_array_equal(found[..., 1, 0], -between)
    (scaled,) = evaluate(lambda v, by: [scaled_columns(v, by)], np.ones((3, 1, 4, 2)), values)
    np.testing.assert_array_equal(scaled, np.broadcast_to(values[..., None, :], (3, 1, 4, 2)))


def test_nothing_depends_on_what_has_arrived() -> None:
    """A cotangent of no elements: zeros, of a graph that reads all that has arrived; without any, none."""
    x, first, second = np.ones((0, 2)), np.full(3, 2.0), np.full((), 5.0)
    found = evaluate(lambda v, a, b: [empty_gradient(v, [None, a, None, b]) or v], x, first, second)
    assert found[0].shape == (0, 2)
    builder = Builder(registry())
    v, a, b = (builder.leaf(TensorType.of(each), i) for i, each in enumerate((x, first, second)))
    made = empty_gradient(v, [a, None, b])
    assert made is not None
    assert {a.index, b.index} <= set(ancestors([made.index], lambda i: builder.nodes[i].operands))
    assert empty_gradient(v, [None, None]) is None
    # what is not empty shows that it is zero times their sum
    (zeros,) = evaluate(lambda v, a: [empty_gradient(v, [a]) or v], np.ones(2), np.array([1.0, np.inf]))
    assert np.isnan(zeros).all()
    (zeros,) = evaluate(lambda v, a: [empty_gradient(v, [a]) or v], np.ones(2), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(zeros, [0.0, 0.0])
