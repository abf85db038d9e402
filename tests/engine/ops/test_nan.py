"""NaN and infinities in ops that select by magnitude: NaN wins, and gets the gradient, as docs/wire.md states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import Array, grads, run

NAN, INF = np.nan, np.inf
G = 6.0


def value_and_gradients(op: str, *arrays: Any, g: Any = G, **attrs: Any) -> tuple[Array, list[list[float]]]:
    """Return the value and the gradients, with a cotangent of 6 at every element."""
    value = run(op, *map(np.asarray, arrays), **attrs)
    _, gradients = grads(op, *map(np.asarray, arrays), cotangent=np.full(value.shape, g), **attrs)
    return value, [a.tolist() for a in gradients]


@pytest.mark.parametrize("op", ["max", "min"])
def test_gradient_of_a_reduction_is_shared_by_its_nans(op: str) -> None:
    x = [[NAN, 1.0, NAN], [2.0, 1.0, 3.0], [-INF, INF, NAN]]
    value, (by_x,) = value_and_gradients(op, x, axes=[1])
    assert np.isnan(value).tolist() == [True, False, True]
    assert by_x[0] == [G / 2, 0, G / 2]
    assert sorted(by_x[1]) == [0, 0, G]
    assert by_x[2] == [0, 0, G]


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_nan_operand_gets_the_whole_gradient(op: str) -> None:
    value, gradients = value_and_gradients(op, [NAN, 1.0, NAN, 1.0], [1.0, NAN, NAN, 1.0])
    assert np.isnan(value).tolist() == [True, True, True, False]
    assert gradients == [[G, 0, G / 2, G / 2], [0, G, G / 2, G / 2]]


def test_broadcast_nan_operand_gets_the_whole_gradient() -> None:
    _, gradients = value_and_gradients("maximum", [[NAN], [1.0]], [0.0, 2.0])
    assert gradients == [[[2 * G], [G]], [0, G]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("clamp", {"min": -1, "max": 1}),
        ("clamp", {"min": -1}),
        ("clamp", {"max": 1}),
        ("relu", {}),
        ("relu", {"at_zero": 1}),
        ("leaky_relu", {}),
        ("elu", {}),
    ],
)
def test_nan_passes_through_piecewise_functions(op: str, attrs: dict[str, Any], dtype: str) -> None:
    value, (by_x,) = value_and_gradients(op, np.array([NAN, 0.5], dtype), **attrs)
    assert np.isnan(value[0])
    assert by_x == [G, G]


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_argmax_returns_the_first_nan(op: str) -> None:
    x = np.array([1.0, NAN, INF, NAN, -INF])
    assert run(op, x, axis=0) == getattr(np, op)(x) == 1


def test_sorting_puts_nan_last() -> None:
    x = np.array([NAN, 2.0, INF, NAN, -1.0])
    value, (by_x,) = value_and_gradients("sort", x, axis=0, g=[1.0, 2, 3, 4, 5])
    np.testing.assert_array_equal(value, np.sort(x))
    assert by_x == [4, 2, 3, 5, 1]
    assert run("argsort", x, axis=0).tolist() == np.argsort(x, kind="stable").tolist()


def test_first_nan_of_a_window_gets_the_gradient() -> None:
    value, (by_x,) = value_and_gradients("max_pool2d", [[1.0, NAN], [NAN, INF]], kernel_size=[2, 2])
    assert np.isnan(value).all()
    assert by_x == [[0, G], [0, 0]]
    assert run("max_pool2d_indices", np.array([[1.0, NAN], [NAN, INF]]), kernel_size=[2, 2]) == 1


@pytest.mark.parametrize("op", ["norm", "logsumexp", "mean", "var", "softmax", "silu", "gelu", "softplus", "abs"])
def test_smooth_functions_of_nan_are_nan(op: str) -> None:
    """These ops select nothing; `mean` is linear, and has the same gradient everywhere."""
    value, (by_x,) = value_and_gradients(op, [NAN, NAN])
    assert np.isnan(value).all()
    assert by_x == [G / 2, G / 2] if op == "mean" else np.isnan(by_x).all()


def test_infinite_component_of_a_norm_gets_the_gradient() -> None:
    value, (by_x,) = value_and_gradients("norm", [[-INF, 2.0], [3.0, 4.0]], axes=[1])
    assert value.tolist() == [INF, 5]
    np.testing.assert_allclose(by_x, [[-G, 0], [0.6 * G, 0.8 * G]], atol=1e-300)


def test_infinite_terms_of_logsumexp_share_the_gradient() -> None:
    x = [[INF, 2.0, -INF], [INF, 1.0, INF], [-INF, -INF, -INF]]
    value, (by_x,) = value_and_gradients("logsumexp", x, axes=[1])
    assert value.tolist() == [INF, INF, -INF]
    assert by_x == [[G, 0, 0], [G / 2, 0, G / 2], [0, 0, 0]]


def test_gradient_of_logsumexp_sums_to_the_cotangent() -> None:
    """Even far from zero, where y cannot resolve its difference to x."""
    _, (by_x,) = value_and_gradients("logsumexp", [1e15, 1e15 + 1])
    np.testing.assert_allclose(by_x, G * np.exp([0, 1]) / (1 + np.e), 1e-14)


def test_infinite_terms_of_logaddexp_share_the_gradient() -> None:
    _, gradients = value_and_gradients("logaddexp", [INF, INF, INF, -INF], [INF, 1.0, -INF, -INF])
    assert gradients == [[G / 2, G, G, 0], [G / 2, 0, 0, 0]]
