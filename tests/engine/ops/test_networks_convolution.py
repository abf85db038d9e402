"""Convolution and its adjoint against a definition in loops, and all error messages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.ops.conv import im2col as convolution_layout
from tests.engine.ops.convolutions import RNG, Axis, Setting, check
from tests.engine.ops.run import Array, error, grads, run
from tests.sampling import together

AXES = [
    axis
    for axis in (Axis(*v) for v in product((1, 2, 5, 6), (1, 2, 3), (1, 2, 3), (0, 1, 2), (1, 2)))
    if axis.spare >= 0
]


@together
@pytest.mark.parametrize("rows", AXES, ids=str)
def test_window_placements(rows: Axis) -> None:
    groups = 1 + AXES.index(rows) % 2
    columns = AXES[(AXES.index(rows) * 7 + groups) % len(AXES)]
    check(Setting((rows, columns), images=1 + groups % 2, groups=groups))


@pytest.mark.parametrize("counts", list(product((0, 1, 3), (0, 1, 3), (0, 1, 3), (1, 3))), ids=str)
def test_zero_or_more_images_channels_and_features(counts: tuple[int, int, int, int]) -> None:
    images, depth, features, groups = counts
    for rows in (Axis(5, 2, 2, 1, 1), Axis(4, 4, 1, 0, 1), Axis(0, 2, 1, 1, 1)):
        check(Setting((rows, Axis(3, 2, 1, 0, 1)), images, depth, features, groups))


@pytest.mark.parametrize("chunk", [1, 700, 2000])
def test_results_do_not_depend_on_chunk_size(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", chunk)
    check(Setting((Axis(6, 2, 1, 1, 2), Axis(5, 3, 2, 1, 1)), images=5, depth=3, features=2, groups=2))
    check(Setting((Axis(6, 5, 1, 0, 1), Axis(5, 4, 1, 0, 1)), images=5, depth=3, features=2, groups=2))


def test_output_padding_beyond_all_windows_is_zero() -> None:
    x, kernel = RNG.normal(size=(1, 1, 2, 2)), RNG.normal(size=(1, 1, 2, 2))
    plain = run("conv_transpose2d", x, kernel, dilation=[3, 3])
    more, (dx, dk) = grads("conv_transpose2d", x, kernel, dilation=[3, 3], output_padding=[2, 0])
    assert more.shape == (1, 1, 7, 5)
    np.testing.assert_array_equal(more[:, :, :5], plain)
    np.testing.assert_array_equal(more[:, :, 5:], 0)
    np.testing.assert_allclose(dx, np.full_like(x, kernel.sum()))
    np.testing.assert_allclose(dk, np.full_like(kernel, x.sum()))


def test_bias_is_added_to_each_feature() -> None:
    x, kernel, bias = RNG.normal(size=(2, 3, 4, 4)), RNG.normal(size=(2, 3, 2, 2)), np.array([10.0, -1.0])
    value, (_, _, db) = grads("conv2d", x, kernel, bias)
    np.testing.assert_allclose(value, run("conv2d", x, kernel) + bias[:, None, None])
    np.testing.assert_allclose(db, [18, 18])
    transposed = kernel.transpose(1, 0, 2, 3)
    value = run("conv_transpose2d", x, transposed, bias)
    np.testing.assert_allclose(value, run("conv_transpose2d", x, transposed) + bias[:, None, None])


def test_float16_is_accumulated_in_float32() -> None:
    x, kernel = np.full((1, 4096, 1, 1), 1, "float16"), np.full((1, 4096, 1, 1), 1.001, "float16")
    exact = np.float16(4096 * float(kernel[0, 0, 0, 0]))
    assert run("conv2d", x, kernel) == exact
    assert run("conv_transpose2d", x, kernel.reshape(4096, 1, 1, 1)) == exact


def test_dtypes_promote_like_numpy() -> None:
    pixels, kernel = np.full((1, 1, 2, 2), 200, "uint8"), np.ones((1, 1, 2, 2), "float32")
    value = run("conv2d", pixels, kernel)
    assert value.dtype == np.float32
    assert value == 800
    assert run("conv2d", pixels.astype("int32"), kernel.astype("int64")).dtype == np.int64


def test_huge_stride_and_dilation_without_effect() -> None:
    x, kernel = RNG.normal(size=(1, 1, 2, 2)), RNG.normal(size=(1, 1, 1, 1))
    value, (dx, dk) = grads("conv2d", x, kernel, stride=[2**62, 2**63 - 1], dilation=[2**62, 2**63 - 1])
    np.testing.assert_allclose(value, x[:, :, :1, :1] * kernel)
    np.testing.assert_allclose(dx[0, 0], [[kernel[0, 0, 0, 0], 0], [0, 0]])
    np.testing.assert_allclose(dk, x[:, :, :1, :1])


X, KERNEL = np.ones((2, 4, 5, 5)), np.ones((6, 4, 3, 3))


@pytest.mark.parametrize(
    ("operands", "attrs", "code", "sentence"),
    [
        (
            (X[0], KERNEL),
            {},
            "shape_mismatch",
            "operand 0 (x) must have rank 4, [n, channels, h, w], but has shape [4, 5, 5]",
        ),
        (
            (X, KERNEL[0]),
            {},
            "shape_mismatch",
            "operand 1 (kernel) must have rank 4, [features, channels / groups, kh, kw], but has shape [4, 3, 3]",
        ),
        (
            (X, KERNEL[..., 1:, 1:]),
            {"groups": 2},
            "shape_mismatch",
            "operand 1 (kernel) must have extent 2 on axis 1 (4 channels in 2 groups), but has shape [6, 4, 2, 2]",
        ),
        (
            (X, KERNEL),
            {"groups": 3},
            "bad_attribute",
            "attribute groups must be a divisor of 4, the number of channels of x, but is 3",
        ),
        (
            (X, KERNEL[:5, :1]),
            {"groups": 4},
            "bad_attribute",
            "attribute groups must be a divisor of 5, the number of features, axis 0 of the kernel, but is 4",
        ),
        (
            (X, KERNEL, np.ones(5)),
            {},
            "shape_mismatch",
            "operand 2 (bias) must have shape [6], one number for each feature, but has shape [5]",
        ),
        (
            (X, np.ones((6, 4, 8, 3))),
            {"padding": [1, 0]},
            "shape_mismatch",
            "the windows span [8, 3], more than the extents [7, 5] of operand 0 (x) with its padding",
        ),
        (
            (X, KERNEL[:, :, :0]),
            {},
            "shape_mismatch",
            "operand 1 (kernel) must have taps, but its spatial extents are [0, 3]",
        ),
        (
            (X, KERNEL),
            {"stride": [2]},
            "bad_attribute",
            "attribute stride must hold one number for each of the 2 spatial axes, but is [2]",
        ),
        (
            (X, KERNEL),
            {"stride": [0, 1]},
            "bad_attribute",
            "attribute stride must be whole numbers of at least 1, but is [0, 1]",
        ),
        (
            (X, KERNEL),
            {"padding": [0, -1]},
            "bad_attribute",
            "attribute padding must be whole numbers of at least 0, but is [0, -1]",
        ),
        (
            (X, KERNEL),
            {"groups": 0},
            "bad_attribute",
            "attribute groups must be a whole number of at least 1, but is 0",
        ),
    ],
)
def test_invalid_operands_of_conv2d_are_refused(
    operands: tuple[Array, ...], attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error("conv2d", *operands, **attrs)
    assert refused.code == code
    assert refused.detail == f"node {len(operands)} (conv2d): {sentence}"


@pytest.mark.parametrize(
    ("kernel", "attrs", "code", "sentence"),
    [
        (
            KERNEL,
            {},
            "shape_mismatch",
            "operand 1 (kernel) must have extent 4 on axis 0 (the channels of x), but has shape [6, 4, 3, 3]",
        ),
        (
            KERNEL[:4],
            {"groups": 3},
            "bad_attribute",
            "attribute groups must be a divisor of 4, the number of channels of x, but is 3",
        ),
        (
            KERNEL[:4],
            {"stride": [2, 1], "output_padding": [1, 1]},
            "bad_attribute",
            "attribute output_padding must be below [2, 1], the larger of stride and dilation, but is [1, 1]",
        ),
        (
            KERNEL[:4],
            {"padding": [4, 0]},
            "bad_attribute",
            "attribute padding is [4, 0], which is larger than the result: its extents would be [-1, 7]",
        ),
    ],
)
def test_invalid_operands_of_conv_transpose2d_are_refused(
    kernel: Array, attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error("conv_transpose2d", X, kernel, **attrs)
    assert refused.code == code
    assert refused.detail == f"node 2 (conv_transpose2d): {sentence}"


def test_conv_transpose2d_of_an_empty_image_is_refused() -> None:
    refused = error("conv_transpose2d", X[:, :, :0], KERNEL[:4])
    assert refused.detail.endswith("operand 0 (x) must have spatial extents of at least 1, but they are [0, 5]")


HUGE = 2**40


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("conv2d", {"padding": [HUGE, 0]}),
        ("conv2d", {"padding": [HUGE, 0], "dilation": [HUGE, 1]}),
        ("conv_transpose2d", {"stride": [HUGE, 1]}),
        ("conv_transpose2d", {"dilation": [1, HUGE]}),
        ("conv_transpose2d", {"stride": [HUGE, 1], "output_padding": [HUGE - 1, 0]}),
    ],
)
def test_over_budget_is_refused_before_allocation(name: str, attrs: dict[str, Any]) -> None:
    assert error(name, X, KERNEL[:4], **attrs).code == "over_budget"


def test_unused_padding_costs_no_work() -> None:
    kernel = RNG.normal(size=(4, 4, 3, 3))
    actual = run("conv2d", X, kernel, padding=[HUGE, 1], stride=[2**62, 1])
    assert actual.shape == (*X.shape[:1], 4, 1, X.shape[3])
    np.testing.assert_array_equal(actual, 0)
    x = RNG.normal(size=(1, 4, 5, 2))
    spread = run("conv_transpose2d", x, kernel, stride=[HUGE, 1], padding=[2 * HUGE, 0])
    alone = run("conv_transpose2d", x[:, :, 2:3], kernel)
    np.testing.assert_allclose(spread, alone, 1e-13, 1e-13)


@pytest.mark.parametrize("infinite", [False, True])
def test_taps_outside_the_result_cost_no_work(infinite: bool) -> None:
    """The same for windows. With an infinite tap, zero padding would give NaN, so each window is added separately."""
    x, kernel = RNG.normal(size=(1, 1, 1, 1)), RNG.normal(size=(1, 1, 3, 1))
    if infinite:
        kernel[0, 0, 0, 0] = np.inf
    attrs = {"dilation": [2**57, 1], "padding": [2**57, 0]}
    np.testing.assert_allclose(run("conv_transpose2d", x, kernel, **attrs), x * kernel[:, :, 1:2])
    x = RNG.normal(size=(1, 1, 5, 1))
    spread = run("conv_transpose2d", x, kernel, stride=[HUGE, 1], padding=[2 * HUGE, 0])
    np.testing.assert_allclose(spread, x[:, :, 2:3] * kernel)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_non_finite_tap_affects_its_positions_only(value: float) -> None:
    x, kernel = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    kernel[0, 0, 0, 2] = value
    expected = run("conv_transpose2d", x, np.ones((1, 1, 3, 3)))
    expected[0, 0, :3, 2:] = value
    np.testing.assert_array_equal(run("conv_transpose2d", x, kernel), expected)


DEEP = [
    Setting((Axis(6, 3, 1, 1, 1), Axis(5, 3, 1, 1, 1)), images=3, depth=9, features=4),
    Setting((Axis(6, 3, 2, 1, 1), Axis(5, 3, 2, 1, 1)), images=3, depth=8, features=7, groups=2),
    Setting((Axis(5, 2, 3, 0, 2), Axis(6, 2, 1, 1, 1)), images=2, depth=12, features=3),
    Setting((Axis(4, 2, 1, 1, 1), Axis(5, 3, 2, 1, 2)), images=2, depth=20, features=1, groups=2),
    Setting((Axis(3, 2), Axis(3, 2, 2, 1), Axis(4, 3, 1, 1)), images=2, depth=9, features=5),
    Setting((Axis(9, 3, 2, 1, 1),), images=2, depth=12, features=11),
]


@pytest.mark.parametrize("chunk", [2000, 1 << 20])
@pytest.mark.parametrize("setting", DEEP, ids=str)
def test_many_channels(monkeypatch: pytest.MonkeyPatch, setting: Setting, chunk: int) -> None:
    """Channels go last before im2col, in chunks of images or rows, and in both directions."""
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(convolution_layout, "LEAST_WINDOWS", 4)
    check(setting)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("setting", [DEEP[0], Setting((Axis(6, 3, 1, 1), Axis(5, 3, 2, 1)), groups=3)], ids=str)
def test_narrow_dtypes_are_accumulated_in_wider_ones(setting: Setting, dtype: str) -> None:
    wide, narrow, kernel = (np.rint(2 * a).astype(dtype) for a in setting.draw())
    for name, x, attrs in (
        ("conv2d", wide, setting.attrs),
        ("conv_transpose2d", narrow, {**setting.attrs, "output_padding": setting.rest}),
    ):
        actual = run(name, x, kernel, **attrs)
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, run(name, x.astype("float64"), kernel.astype("float64"), **attrs))
