"""Convolutions of any rank: biases are added, batches fold into one call, and values spread as they were gathered."""

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


def test_a_bias_is_added_to_each_feature() -> None:
    x, kernel, bias = RNG.normal(size=(2, 2, 4, 5)), RNG.normal(size=(3, 2, 2, 2)), RNG.normal(size=3)
    found = come_to(convolved, x, kernel, bias)
    np.testing.assert_allclose(found, by_definition(x, kernel) + bias[:, None, None], 1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("mapped", [(True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_batch_is_each_by_itself(n: int, mapped: tuple[bool, bool], groups: int) -> None:
    shapes = (2, 4, 4, 5), (6, 4 // groups, 2, 2)
    arrays = [RNG.normal(size=(n, *shape) if m else shape) for m, shape in zip(mapped, shapes, strict=True)]
    found = come_to(lambda x, kernel: CONV.batch(mapped, x, kernel, groups=groups, **PLACED), *arrays)
    assert found.shape == (n, *by_definition(np.zeros(shapes[0]), np.zeros(shapes[1]), groups).shape)
    for i in range(n):
        each = [x[i] if m else x for m, x in zip(mapped, arrays, strict=True)]
        np.testing.assert_allclose(found[i], by_definition(each[0], each[1], groups), 1e-11, 1e-12)


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_n_goes_in_front_of_the_entries_of_each_group(axis: int, groups: int) -> None:
    """And comes out again; of one group, by a view."""
    x = RNG.normal(size=(4, 6, 12, 6))
    found = come_to(lambda v: fold_batch(v, axis, groups), x)
    each = [np.split(one, groups, axis) for one in x]
    wanted = np.concatenate([np.concatenate(parts, axis) for parts in zip(*each, strict=True)], axis)
    np.testing.assert_array_equal(found, wanted)
    values, (again,) = written(lambda v: unfold_batch(v, axis, 4, groups), found)
    np.testing.assert_array_equal(again, x)
    assert groups > 1 or [n.op.name for n in values[0].builder.nodes[1:]] == ["reshape", "transpose"]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("extents", [(4, 5), (5, 4)], ids=["with a rest", "evenly"])
def test_values_spread_by_the_adjoint_and_are_gathered_by_the_convolution(
    extents: tuple[int, int], groups: int
) -> None:
    """⟨spread_values(g), x⟩ = ⟨g, correlated(x)⟩, of any x and g."""
    x, kernel = RNG.normal(size=(2, 4, *extents)), RNG.normal(size=(6, 4 // groups, 2, 2))
    y = by_definition(x, kernel, groups)
    windows, g = Windows((2, 2), **PLACED), RNG.normal(size=y.shape)
    found = come_to(lambda wide, k: emit_correlation(wide, k, y.shape[2:], windows, groups), x, kernel)
    np.testing.assert_allclose(found, y, 1e-11, 1e-12)
    back = come_to(lambda narrow, k: spread_values(narrow, k, extents, windows, groups), g, kernel)
    assert back.shape == x.shape
    assert float((back * x).sum()) == pytest.approx(float((g * y).sum()))


@pytest.mark.parametrize(("images", "channels"), [(2, 2), (1, 1)])
def test_of_one_axis_values_spread_by_way_of_two(images: int, channels: int) -> None:
    x, kernel = RNG.normal(size=(images, channels, 8)), RNG.normal(size=(3, channels, 2))
    windows = Windows((2,), (3,), (1,), (2,))
    y = come_to(lambda wide, k: emit_correlation(wide, k, (3,), windows, 1), x, kernel)
    g = RNG.normal(size=y.shape)
    back = come_to(lambda narrow, k: spread_values(narrow, k, (8,), windows, 1), g, kernel)
    assert back.shape == x.shape
    assert float((back * x).sum()) == pytest.approx(float((g * y).sum()))


def test_what_a_result_has_too_much_is_cut_off_and_nothing_else_is_written() -> None:
    x = RNG.normal(size=(2, 3))
    np.testing.assert_array_equal(come_to(lambda v: crop(v, (1, 2)), x), x[:1, :2])
    written(lambda v: [v] if crop(v, (2, 3)) is v else [], x)


def test_the_work_is_two_for_each_tap_of_each_channel() -> None:
    x, kernel = (TensorType(shape, np.dtype("float32")) for shape in ((2, 4, 4, 5), (6, 2, 2, 2)))
    out = CONV.infer(x, kernel, groups=2, **PLACED)
    assert CONV.flops(out, x, kernel, groups=2, **PLACED) == 2 * (2 * 6 * 3 * 3) * (2 * 2 * 2)


def test_attributes_have_a_number_for_each_axis() -> None:
    x, kernel = (TensorType(shape, np.dtype("float32")) for shape in ((1, 1, 4, 5), (1, 1, 2, 2)))
    with pytest.raises(BadAttribute, match=r"attribute stride must hold one number for each of the 2 spatial axes"):
        CONV.canonical({**PLACED, "stride": (1,), "groups": 1}, x, kernel)
    with pytest.raises(ShapeMismatch, match=r"kernel"):
        CONV.canonical({**PLACED, "groups": 1}, x, kernel.with_shape((1, 1, 2)))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_defaults_place_windows_side_by_side(rank: int) -> None:
    found = {name: attr.default for name, attr in transposed_placing_attrs(rank).items()}
    ones, zeros = (1,) * rank, (0,) * rank
    assert found == {"stride": ones, "padding": zeros, "dilation": ones, "groups": 1, "output_padding": zeros}
    assert set(found) - set(placing_attrs(rank)) == {"output_padding"}


def test_a_result_has_the_operands_common_dtype() -> None:
    narrow, wide = (TensorType((1,), np.dtype(dtype)) for dtype in ("float32", "float64"))
    assert result_type([2, 3], narrow, None, wide) == TensorType((2, 3), np.dtype("float64"))
