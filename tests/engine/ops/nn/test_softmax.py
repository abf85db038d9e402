"""Softmax and log-softmax: large shifts, infinities, and closed forms in higher precision."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.ops.nn.softmax import lines
from tests.engine.ops.run import ON_GPU, Array, error, grads, run

OPS = ("softmax", "log_softmax")


def reference(op: str, x: Array, axis: int) -> Array:
    """Compute from the definition in long double."""
    shifted = x.astype("longdouble") - x.max(axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    y = np.exp(shifted) / total if op == "softmax" else shifted - np.log(total)
    return y.astype("float64")


def jacobian(op: str, x: Array) -> Array:
    """Compute the Jacobian row by row from cotangents."""
    return np.stack([grads(op, x, cotangent=row)[1][0] for row in np.eye(x.size)])


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0])
@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_values(op: str, axis: int, scale: float, shift: float) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 2)) * scale + shift
    np.testing.assert_allclose(run(op, x, axis=axis), reference(op, x, axis), 1e-13, 1e-15)


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_gradients(shift: float) -> None:
    x = np.array([-1.0, 0.5, 2.0, 2.0]) + shift
    p = reference("softmax", x, 0)
    np.testing.assert_allclose(jacobian("softmax", x), np.diag(p) - np.outer(p, p), 1e-12, 1e-15)
    np.testing.assert_allclose(jacobian("log_softmax", x), np.eye(4) - p, 1e-12, 1e-15)


def test_default_axis_is_the_last() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for op in OPS:
        np.testing.assert_array_equal(run(op, x), run(op, x, axis=1))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", [(20_000, 3), (3, 20_000), (700, 100), (5, 4000, 2), (70_000,)], ids=str)
def test_rows_of_any_length_and_number(op: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    for axis in range(x.ndim):
        np.testing.assert_allclose(run(op, x, axis=axis), reference(op, x, axis), 1e-12)


def test_values_of_extreme_magnitude() -> None:
    x = np.array([[1e4, -1e4, 0.0], [0.0, 1e308, -1e308]])
    np.testing.assert_array_equal(run("softmax", x), [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(run("log_softmax", x), [[0, -2e4, -1e4], [-1e308, 0, -np.inf]])
    _, (by_x,) = grads("log_softmax", x[0], cotangent=[0.0, 1.0, 0.0])
    np.testing.assert_array_equal(by_x, [-1, 1, 0])


def test_masked_element_is_zero_and_masked_row_is_nan() -> None:
    x = np.array([[0.0, -np.inf, 0.0], [-np.inf, -np.inf, -np.inf]])
    nan_row = [np.nan] * 3
    np.testing.assert_array_equal(run("softmax", x), [[0.5, 0, 0.5], nan_row])
    np.testing.assert_allclose(run("log_softmax", x), [[-np.log(2), -np.inf, -np.log(2)], nan_row])
    _, (by_x,) = grads("softmax", x, cotangent=[[1.0, 5.0, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(by_x, [[0.25, 0, -0.25], nan_row])


@pytest.mark.parametrize("op", OPS)
def test_rows_of_one_element_and_empty_rows(op: str) -> None:
    value, (by_x,) = grads(op, np.array([[3.0], [4.0]]))
    np.testing.assert_array_equal(value, np.full((2, 1), float(op == "softmax")))
    np.testing.assert_array_equal(by_x, np.zeros((2, 1)))
    for shape in ((2, 0), (0, 2)):
        value, (by_x,) = grads(op, np.zeros(shape))
        assert value.shape == by_x.shape == shape


@pytest.mark.parametrize("op", OPS)
def test_dtypes(op: str) -> None:
    x = np.array([[0, 1, 3]])
    for dtype in ("float16", "float32", "float64"):
        actual = run(op, x.astype(dtype))
        assert actual.dtype == dtype
        assert_near(actual, reference(op, x.astype(float), 1))
    for dtype in ("int8", "int64"):  # computed node by node, while rows of floats are one kernel
        assert_near(run(op, x.astype(dtype)), run(op, x.astype(float)))
    assert_near(run(op, x > 0), run(op, (x > 0).astype(float)))


def assert_near(actual: Array, expected: Array) -> None:
    """Compare to a few units in the last place, or absolutely if the logarithm of a sum is near 0."""
    eps = np.finfo(actual.dtype).eps
    np.testing.assert_allclose(actual, expected, (8 if ON_GPU else 4) * eps, eps)


def test_line_count_along_an_axis() -> None:
    shapes: list[tuple[int, ...]] = [(2, 3, 4), (0, 3), (3, 0)]
    assert [lines(TensorType(shape, np.dtype("float32")), 1) for shape in shapes] == [8, 0, 0]


def test_float16_is_accumulated_in_float32() -> None:
    np.testing.assert_allclose(run("softmax", np.zeros(70_000, "float16")).astype(float), 1 / 70_000, 1e-2)
    np.testing.assert_allclose(run("log_softmax", np.zeros(70_000, "float16")).astype(float), -np.log(70_000), 1e-3)


@pytest.mark.parametrize("op", OPS)
def test_axis_out_of_range_is_refused(op: str) -> None:
    refused = error(op, np.ones((2, 3)), axis=2)
    assert refused.code == "bad_attribute"
    assert refused.detail == f"node 1 ({op}): axis must be between -2 and 1, but is 2"
    assert error(op, np.ones(())).detail.startswith(f"node 1 ({op}): axis must be absent (a 0-d tensor has no axes)")
