"""Pooling against windows extracted one by one: ties, padding, infinities, NaN, and error messages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.ops.conv.pooling import _planes
from tests.engine.ops.run import Array, error, grads, run

RNG = np.random.default_rng(0)
SETTINGS = [
    {"kernel_size": [kh, kw], "stride": [s, 4 - s], "padding": [p, kw // 2]}
    for kh, kw, s, p in product((1, 2, 3, 4), (1, 3), (1, 2, 3), (0, 1, 2))
    if 2 * p <= kh
]


def windows(x: Array, outside: float, *, kernel_size: list[int], stride: list[int], padding: list[int]) -> Array:
    """Return each window of a plane, flattened: [h', w', taps]."""
    pad_widths = [(p, p) for p in padding]
    padded = np.pad(x, pad_widths, constant_values=outside)
    heights, widths = (range(0, e - k + 1, s) for e, k, s in zip(padded.shape, kernel_size, stride, strict=True))
    taps = [[padded[i : i + kernel_size[0], j : j + kernel_size[1]].ravel() for j in widths] for i in heights]
    return np.array(taps)


def positions(x: Array, attrs: dict[str, Any]) -> Array:
    """Return the flat position of each tap of each window, −1 for padding."""
    return windows(np.arange(x.size).reshape(x.shape), -1, **attrs).astype(int)


@pytest.mark.parametrize("attrs", SETTINGS, ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_max_pool_values_indices_and_gradients(attrs: dict[str, Any], ties: bool) -> None:
    x = RNG.integers(-1, 2, (5, 6)).astype(float) if ties else RNG.normal(size=(5, 6))
    taps, tap_positions = windows(x, -np.inf, **attrs), positions(x, attrs)
    first = np.argmax(taps, axis=-1)
    chosen = np.take_along_axis(tap_positions, first[..., None], -1)[..., 0]
    g = RNG.normal(size=first.shape)
    expected = np.zeros(x.size)
    np.add.at(expected, chosen.ravel(), g.ravel())
    value, (dx,) = grads("max_pool2d", x, cotangent=g, **attrs)
    np.testing.assert_array_equal(value, taps.max(axis=-1))
    np.testing.assert_allclose(dx.ravel(), expected, 1e-13, 1e-13)
    indices = run("max_pool2d_indices", x, **attrs)
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(indices, chosen)


@pytest.mark.parametrize("attrs", SETTINGS, ids=str)
def test_avg_pool_values_and_gradients(attrs: dict[str, Any]) -> None:
    x = RNG.normal(size=(6, 5))
    taps, tap_positions = windows(x, 0, **attrs), positions(x, attrs)
    g = RNG.normal(size=tap_positions.shape[:2])
    expected = np.zeros(x.size + 1)
    np.add.at(expected, tap_positions, np.broadcast_to(g[..., None] / tap_positions.shape[-1], tap_positions.shape))
    value, (dx,) = grads("avg_pool2d", x, cotangent=g, **attrs)
    np.testing.assert_allclose(value, taps.mean(axis=-1), 1e-13, 1e-13)
    np.testing.assert_allclose(dx.ravel(), expected[:-1], 1e-13, 1e-13)


@pytest.mark.parametrize("name", ["max_pool2d", "max_pool2d_indices", "avg_pool2d"])
def test_any_number_of_leading_axes(name: str) -> None:
    x = RNG.normal(size=(2, 3, 4, 4))
    attrs: dict[str, Any] = {"kernel_size": [2, 2], "stride": [1, 2], "padding": [1, 0]}
    batched = run(name, x, **attrs)
    one_by_one = [[run(name, plane, **attrs) for plane in image] for image in x]
    np.testing.assert_array_equal(batched, one_by_one)
    assert run(name, x[:0], **attrs).shape == (0, *batched.shape[1:])
    assert run(name, x[:, None, :0], **attrs).shape == (2, 1, 0, *batched.shape[2:])


def test_indices_of_minus_infinity_are_never_padding() -> None:
    x = np.full((3, 3), -np.inf)
    indices = run("max_pool2d_indices", x, kernel_size=[2, 2], stride=[2, 2], padding=[1, 1])
    np.testing.assert_array_equal(indices, [[0, 1], [3, 4]])


def test_nan_is_the_maximum_of_its_window_only() -> None:
    x = np.array([[1, np.nan, 5, 6], [np.nan, 9, 7, 8]])
    np.testing.assert_array_equal(run("max_pool2d", x, kernel_size=[2, 2]), [[np.nan, 8]])
    np.testing.assert_array_equal(run("max_pool2d_indices", x, kernel_size=[2, 2]), [[1, 7]])


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("attrs", SETTINGS, ids=str)
def test_gradient_of_max_pool_goes_to_the_first_maximum(attrs: dict[str, Any], nan: bool) -> None:
    """Including zeros of either sign, and NaN; infinite cotangents leave the other elements 0."""
    x = RNG.choice([0.0, -0.0, -1.0, -np.inf, *[np.nan] * nan], (3, 5, 6))
    g = RNG.normal(size=run("max_pool2d", x, **attrs).shape)
    g[RNG.random(g.shape) < 0.2] = np.inf
    indices = run("max_pool2d_indices", x, **attrs)
    expected = np.zeros((3, 30))
    for plane, position, cotangents in zip(expected, indices, g, strict=True):
        np.add.at(plane, position.ravel(), cotangents.ravel())
    actual, (gradient,) = grads("max_pool2d_back", g, x, wrt=[0], cotangent=np.arange(90.0).reshape(x.shape), **attrs)
    np.testing.assert_allclose(actual, expected.reshape(x.shape), 1e-13, 1e-13)
    np.testing.assert_array_equal(gradient, indices + 30 * np.arange(3)[:, None, None])


def test_gradient_of_max_pool_is_accumulated_in_float32() -> None:
    x, g = np.zeros((3, 3), "float16"), np.full((3, 3), 1024.5, "float16")
    x[1, 1] = 1
    attrs: dict[str, Any] = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1]}
    actual = run("max_pool2d_back", g, x, **attrs)
    assert actual.dtype == np.float16
    assert actual[1, 1] == np.float16(9 * np.float32(g[0, 0]))
    assert run("max_pool2d_back", np.ones((3, 3), "int8"), x, **attrs).dtype == np.int8


def test_cotangent_must_have_one_number_per_window() -> None:
    refused = error("max_pool2d_back", np.ones((2, 2, 2, 3)), X, kernel_size=[2, 2])
    assert (refused.code, refused.operand) == ("shape_mismatch", 0)
    assert "operand 0 (g) must have shape [2, 2, 2, 2], one number for each window of x" in refused.detail


def test_pooling_of_integers() -> None:
    x = np.array([[-128, -128], [-127, -128]], "int8")
    assert run("max_pool2d", x, kernel_size=[2, 2]).dtype == np.int8
    assert run("max_pool2d", x, kernel_size=[2, 2]) == -127
    assert run("max_pool2d_indices", x, kernel_size=[2, 2]) == 2
    mean = run("avg_pool2d", x, kernel_size=[2, 2])
    assert mean.dtype == np.float64
    assert mean == -127.75


def test_float16_means_are_accumulated_in_float32() -> None:
    x = np.full((64, 64), 40000, "float16")
    assert run("avg_pool2d", x, kernel_size=[64, 64]) == np.float16(40000)


def test_windows_with_more_than_255_taps() -> None:
    x = np.arange(20.0 * 20).reshape(20, 20)
    assert run("max_pool2d_indices", x, kernel_size=[20, 20]) == 399


def test_huge_windows_are_over_budget_and_huge_strides_are_not() -> None:
    x = np.ones((1, 1))
    attrs: dict[str, Any] = {"kernel_size": [2**40, 1], "padding": [2**39, 0], "stride": [2**62, 2**62]}
    assert error("max_pool2d", x, **attrs).code == "over_budget"
    assert run("max_pool2d", x, kernel_size=[1, 1], stride=[2**62, 2**63 - 1]) == 1


X = np.ones((2, 2, 5, 5))


@pytest.mark.parametrize("name", ["max_pool2d", "max_pool2d_indices", "avg_pool2d"])
@pytest.mark.parametrize(
    ("x", "attrs", "code", "sentence"),
    [
        (X, {}, "bad_attribute", "attribute kernel_size is required"),
        (
            X,
            {"kernel_size": [2]},
            "bad_attribute",
            "attribute kernel_size must hold one number for each of the 2 spatial axes, but is [2]",
        ),
        (
            X,
            {"kernel_size": [2, 2], "stride": [1, 1, 1]},
            "bad_attribute",
            "attribute stride must hold one number for each of the 2 spatial axes, but is [1, 1, 1]",
        ),
        (
            X,
            {"kernel_size": [3, 2], "padding": [2, 0]},
            "bad_attribute",
            "attribute padding must be at most half the kernel size [3, 2], but is [2, 0]",
        ),
        (
            X,
            {"kernel_size": [6, 2]},
            "shape_mismatch",
            "the windows span [6, 2], more than the extents [5, 5] of operand 0 (x) with its padding",
        ),
        (
            X[0, 0, 0],
            {"kernel_size": [1, 1]},
            "shape_mismatch",
            "operand 0 (x) must have two spatial axes at the end, with extents of at least 1, but has shape [5]",
        ),
        (
            X[0, 0, :0],
            {"kernel_size": [1, 1]},
            "shape_mismatch",
            "operand 0 (x) must have two spatial axes at the end, with extents of at least 1, but has shape [0, 5]",
        ),
        (
            X[:, :, :0],
            {"kernel_size": [1, 1]},
            "shape_mismatch",
            (
                "operand 0 (x) must have two spatial axes at the end, with extents of at least 1, but has shape "
                "[2, 2, 0, 5]"
            ),
        ),
    ],
)
def test_invalid_operands_are_refused(name: str, x: Array, attrs: dict[str, Any], code: str, sentence: str) -> None:
    refused = error(name, x, **attrs)
    assert refused.code == code
    assert refused.detail == f"node 1 ({name}): {sentence}"


def test_planes_are_chunked_without_overlap() -> None:
    x = np.broadcast_to(0.0, (100, 1024, 1024))
    parts = list(_planes(x))
    assert len(parts) > 1
    assert [i for part in parts for i in range(len(x))[part]] == list(range(100))
