"""Norms against closed forms: axes, parameters, extremes, and error messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import Array, error, grads, run

RNG = np.random.default_rng(0)
X = RNG.normal(3, 2, (2, 3, 4))


def standardised(x: Array, axes: tuple[int, ...], eps: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@pytest.mark.parametrize("axes", [(2,), (1, 2), (0, 2), (0, 1, 2), (1,)], ids=str)
def test_layer_norm_over_any_axes(axes: tuple[int, ...]) -> None:
    shape = tuple(X.shape[a] for a in axes)
    weight, bias = RNG.normal(size=shape), RNG.normal(size=shape)
    parameter_shape = [e if i in axes else 1 for i, e in enumerate(X.shape)]
    expected = standardised(X, axes) * weight.reshape(parameter_shape) + bias.reshape(parameter_shape)
    np.testing.assert_allclose(run("layer_norm", X, weight, bias, axes=list(axes)), expected, 1e-12)
    reversed_axes = [a - 3 for a in reversed(axes)]
    np.testing.assert_allclose(run("layer_norm", X, weight, bias, axes=reversed_axes), expected, 1e-12)


def test_layer_norm_defaults() -> None:
    np.testing.assert_allclose(run("layer_norm", X), standardised(X, (2,)), 1e-12)
    np.testing.assert_allclose(run("layer_norm", X, np.full(4, 2.0)), 2 * standardised(X, (2,)), 1e-12)


def layer_norm_gradient(x: Array, g: Array, eps: float) -> Array:
    """Closed form of the gradient, over the last axis."""
    z, spread = standardised(x, (-1,), eps), np.sqrt(x.var(-1, keepdims=True) + eps)
    return (g - g.mean(-1, keepdims=True) - z * (g * z).mean(-1, keepdims=True)) / spread


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
@pytest.mark.parametrize("offset", [0, 1e6])
def test_gradient_of_layer_norm(scale: float, offset: float) -> None:
    x, g = scale * X + offset, RNG.normal(size=X.shape)
    _, (dx,) = grads("layer_norm", x, cotangent=g, eps=1e-3)
    expected = layer_norm_gradient(np.asarray(x, "longdouble"), g, 1e-3).astype("float64")
    np.testing.assert_allclose(dx, expected, 1e-7, 1e-12)


def test_layer_norm_of_a_constant_row_has_a_finite_gradient() -> None:
    value, (dx,) = grads("layer_norm", np.full((1, 3), 7.0), cotangent=[[1.0, 0, 0]])
    np.testing.assert_array_equal(value, 0)
    np.testing.assert_allclose(dx, np.array([[2, -1, -1]]) / 3 / np.sqrt(1e-5), 1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_batch_norm_statistics_are_over_all_other_axes(axis: int) -> None:
    others = tuple(i for i in range(3) if i != axis % 3)
    weight, bias = RNG.normal(size=X.shape[axis]), RNG.normal(size=X.shape[axis])
    parameter_shape = [e if i == axis % 3 else 1 for i, e in enumerate(X.shape)]
    expected = standardised(X, others, 0.1) * weight.reshape(parameter_shape) + bias.reshape(parameter_shape)
    np.testing.assert_allclose(run("batch_norm", X, weight, bias, axis=axis, eps=0.1), expected, 1e-12)


def test_batch_norm_of_one_example_is_the_bias() -> None:
    x, weight, bias = X[0, 0], np.full(4, 3.0), np.arange(4.0)
    value, (dx, dw, db) = grads("batch_norm", x, weight, bias, axis=0)
    np.testing.assert_array_equal(value, bias)
    np.testing.assert_array_equal(dx, 0)
    np.testing.assert_array_equal(dw, 0)
    np.testing.assert_array_equal(db, 1)


@pytest.mark.parametrize("axes", [(2,), (0, 1)], ids=str)
def test_rms_norm(axes: tuple[int, ...]) -> None:
    weight = RNG.normal(size=tuple(X.shape[a] for a in axes))
    parameter_shape = [e if i in axes else 1 for i, e in enumerate(X.shape)]
    expected = X / np.sqrt((X**2).mean(axes, keepdims=True) + 0.1) * weight.reshape(parameter_shape)
    np.testing.assert_allclose(run("rms_norm", X, weight, axes=list(axes), eps=0.1), expected, 1e-12)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_float16_squares_do_not_overflow(name: str) -> None:
    x = np.array([[3000, -3000, 3000, -3000]], "float16")
    value = run(name, x)
    assert value.dtype == np.float16
    np.testing.assert_allclose(value, [[1, -1, 1, -1]], 1e-3)


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "rms_norm"])
def test_norms_of_no_rows(name: str) -> None:
    value, (dx,) = grads(name, np.ones((0, 3)))
    assert value.shape == dx.shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "code", "sentence"),
    [
        ("layer_norm", (X,), {"eps": 0.0}, "bad_attribute", "attribute eps must be positive, but is 0"),
        ("batch_norm", (X,), {"eps": -1.0}, "bad_attribute", "attribute eps must be positive, but is -1"),
        (
            "layer_norm",
            (X,),
            {"axes": [3]},
            "bad_attribute",
            "axes must be between -3 and 2, but is 3",
        ),
        (
            "layer_norm",
            (X, np.ones(3)),
            {},
            "shape_mismatch",
            "operand 1 (weight) must have shape [4], that of x on axes [2], but has shape [3]",
        ),
        (
            "layer_norm",
            (X, np.ones((3, 4)), np.ones(4)),
            {"axes": [1, 2]},
            "shape_mismatch",
            "operand 2 (bias) must have shape [3, 4], that of x on axes [1, 2], but has shape [4]",
        ),
        (
            "batch_norm",
            (X, np.ones(4)),
            {},
            "shape_mismatch",
            "operand 1 (weight) must have shape [3], that of x on axes [1], but has shape [4]",
        ),
        ("batch_norm", (X[0, 0],), {}, "bad_attribute", "axis must be between -1 and 0, but is 1"),
        (
            "rms_norm",
            (X.astype("int64"),),
            {},
            "dtype_mismatch",
            "operand 0 (x) must be of dtype float16, float32, float64, but is int64",
        ),
        (
            "rms_norm",
            (X, np.ones(4), np.ones(4)),
            {},
            "operand_count",
            "takes 1 to 2 operands (x, weight?), but got 3",
        ),
    ],
)
def test_invalid_operands_are_refused(
    name: str, operands: tuple[Array, ...], attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error(name, *operands, **attrs)
    assert refused.code == code
    assert refused.detail == f"node {len(operands)} ({name}): {sentence}"
