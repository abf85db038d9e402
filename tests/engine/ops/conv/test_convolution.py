"""Convolutions of any rank: biases, batches folded into one call, and the adjoint that spreads values."""

from __future__ import annotations

from itertools import product
from typing import Any, cast

import numpy as np
import pytest

from engine import registry
from engine.ir.errors import BadAttribute, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.tensor_type import TensorType
from engine.ops.conv.convolution import (
    Conv2D,
    crop,
    emit_correlation,
    fold_batch,
    placing_attrs,
    result_type,
    spread_values,
    transposed_placing_attrs,
    unfold_batch,
)
from engine.ops.conv.windows import Windows
from tests.engine.ops.values import Array, come_to, written

RNG = np.random.default_rng(15)
CONV = cast("Conv2D", registry().ops["conv2d"])
PLACED: dict[str, Any] = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}


def by_definition(x: Array, kernel: Array, groups: int = 1) -> Array:
    """Σ over channels of the group and taps, position by position."""
    (s0, s1), (p0, p1), (d0, d1) = PLACED["stride"], PLACED["padding"], PLACED["dilation"]
    padded = np.pad(x, ((0, 0), (0, 0), (p0, p0), (p1, p1)))
    features, depth, a, b = kernel.shape
    high, wide = (padded.shape[2] - d0 * (a - 1) - 1) // s0 + 1, (padded.shape[3] - d1 * (b - 1) - 1) // s1 + 1
    y = np.zeros((len(x), features, high, wide))
    for o, i, j in product(range(features), range(high), range(wide)):
        first = o // (features // groups) * depth
        seen = padded[:, first : first + depth, i * s0 :: d0, j * s1 :: d1][..., :a, :b]
        y[:, o, i, j] = (seen * kernel[o]).sum((1, 2, 3))
    return y


def convolved(*values: Value, groups: int = 1) -> Value:
    return values[0].builder.emit(CONV, values, {**PLACED, "groups": groups})


def test_bias_is_added_to_each_feature() -> None:
    x, kernel, bias = RNG.normal(size=(2, 2, 4, 5)), RNG.normal(size=(3, 2, 2, 2)), RNG.normal(size=3)
    actual = come_to(convolved, x, kernel, bias)
    np.testing.assert_allclose(actual, by_definition(x, kernel) + bias[:, None, None], 1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("mapped", [(True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_batch_matches_single_examples(n: int, mapped: tuple[bool, bool], groups: int) -> None:
    shapes = (2, 4, 4, 5), (6, 4 // groups, 2, 2)
    arrays = [RNG.normal(size=(n, *shape) if m else shape) for m, shape in zip(mapped, shapes, strict=True)]
    actual = come_to(lambda x, kernel: CONV.batch(mapped, x, kernel, groups=groups, **PLACED), *arrays)
    assert actual.shape == (n, *by_definition(np.zeros(shapes[0]), np.zeros(shapes[1]), groups).shape)
    for i in range(n):
        each = [x[i] if m else x for m, x in zip(mapped, arrays, strict=True)]
        np.testing.assert_allclose(actual[i], by_definition(each[0], each[1], groups), 1e-11, 1e-12)


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_fold_batch_puts_n_first_within_each_group(axis: int, groups: int) -> None:
    """`unfold_batch` is the inverse; with one group it is a view."""
    x = RNG.normal(size=(4, 6, 12, 6))
    actual = come_to(lambda v: fold_batch(v, axis, groups), x)
    each = [np.split(one, groups, axis) for one in x]
    expected = np.concatenate([np.concatenate(parts, axis) for parts in zip(*each, strict=True)], axis)
    np.testing.assert_array_equal(actual, expected)
    values, (unfolded,) = written(lambda v: unfold_batch(v, axis, 4, groups), actual)
    np.testing.assert_array_equal(unfolded, x)
    assert groups > 1 or [n.op.name for n in values[0].builder.nodes[1:]] == ["reshape", "transpose"]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("extents", [(4, 5), (5, 4)], ids=["with a rest", "evenly"])
def test_spread_values_is_the_adjoint_of_correlation(extents: tuple[int, int], groups: int) -> None:
    """⟨spread_values(g), x⟩ = ⟨g, correlated(x)⟩, for any x and g."""
    x, kernel = RNG.normal(size=(2, 4, *extents)), RNG.normal(size=(6, 4 // groups, 2, 2))
    y = by_definition(x, kernel, groups)
    windows, g = Windows((2, 2), **PLACED), RNG.normal(size=y.shape)
    actual = come_to(lambda wide, k: emit_correlation(wide, k, y.shape[2:], windows, groups), x, kernel)
    np.testing.assert_allclose(actual, y, 1e-11, 1e-12)
    back = come_to(lambda narrow, k: spread_values(narrow, k, extents, windows, groups), g, kernel)
    assert back.shape == x.shape
    assert float((back * x).sum()) == pytest.approx(float((g * y).sum()))


@pytest.mark.parametrize(("images", "channels"), [(2, 2), (1, 1)])
def test_spread_values_on_one_axis(images: int, channels: int) -> None:
    x, kernel = RNG.normal(size=(images, channels, 8)), RNG.normal(size=(3, channels, 2))
    windows = Windows((2,), (3,), (1,), (2,))
    y = come_to(lambda wide, k: emit_correlation(wide, k, (3,), windows, 1), x, kernel)
    g = RNG.normal(size=y.shape)
    back = come_to(lambda narrow, k: spread_values(narrow, k, (8,), windows, 1), g, kernel)
    assert back.shape == x.shape
    assert float((back * x).sum()) == pytest.approx(float((g * y).sum()))


def test_crop_cuts_only_the_excess() -> None:
    x = RNG.normal(size=(2, 3))
    np.testing.assert_array_equal(come_to(lambda v: crop(v, (1, 2)), x), x[:1, :2])
    written(lambda v: [v] if crop(v, (2, 3)) is v else [], x)


def test_flops_are_two_per_tap_and_channel() -> None:
    x, kernel = (TensorType(shape, np.dtype("float32")) for shape in ((2, 4, 4, 5), (6, 2, 2, 2)))
    out = CONV.infer(x, kernel, groups=2, **PLACED)
    assert CONV.flops(out, x, kernel, groups=2, **PLACED) == 2 * (2 * 6 * 3 * 3) * (2 * 2 * 2)


def test_attributes_need_a_number_per_axis() -> None:
    x, kernel = (TensorType(shape, np.dtype("float32")) for shape in ((1, 1, 4, 5), (1, 1, 2, 2)))
    with pytest.raises(BadAttribute, match=r"attribute stride must hold one number for each of the 2 spatial axes"):
        CONV.canonical({**PLACED, "stride": (1,), "groups": 1}, x, kernel)
    with pytest.raises(ShapeMismatch, match=r"kernel"):
        CONV.canonical({**PLACED, "groups": 1}, x, kernel.with_shape((1, 1, 2)))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_default_placing_attributes(rank: int) -> None:
    actual = {name: attr.default for name, attr in transposed_placing_attrs(rank).items()}
    ones, zeros = (1,) * rank, (0,) * rank
    assert actual == {"stride": ones, "padding": zeros, "dilation": ones, "groups": 1, "output_padding": zeros}
    assert set(actual) - set(placing_attrs(rank)) == {"output_padding"}


def test_result_has_the_common_dtype_of_the_operands() -> None:
    narrow, wide = (TensorType((1,), np.dtype(dtype)) for dtype in ("float32", "float64"))
    assert result_type([2, 3], narrow, None, wide) == TensorType((2, 3), np.dtype("float64"))
