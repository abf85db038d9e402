"""Edge cases of pooling over one axis and over three: ceilings, no entries, integers, defaults."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.conv.pooling_axes import _attrs
from tests.engine.ops.conv.test_window_axes import pooled, spans
from tests.engine.ops.run import error, grads, run

#: extent, kernel size, stride, padding: with another window, or without one for either reason
CEILINGS = [(4, 2, 1, 0), (5, 2, 2, 0), (4, 2, 3, 1), (5, 2, 3, 1), (9, 3, 3, 1), (7, 3, 2, 1), (6, 3, 4, 1)]


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(("extent", "size", "stride", "padding"), CEILINGS)
def test_ceiling_windows(kind: str, extent: int, size: int, stride: int, padding: int) -> None:
    x = np.random.default_rng(0).normal(size=extent)
    actual, (slope,) = grads(f"{kind}_pool1d", x, kernel_size=[size], stride=[stride], padding=[padding], ceiling=True)
    expected, expected_slope = pooled(x, kind, [spans(extent, size, stride, padding, 1, True)], [padding])
    np.testing.assert_allclose(actual, expected, 1e-13)
    np.testing.assert_allclose(slope, expected_slope, 1e-13)


def test_integer_means_are_computed_in_floats() -> None:
    """2⁶² + 2⁶² overflows int64, and 3 · 50 overflows int8."""
    large = np.full(2, 2**62)
    assert run("avg_pool1d", large, kernel_size=[2]).tolist() == [2.0**62]
    small = np.full(151, 100, "int8")
    np.testing.assert_array_equal(run("avg_pool1d", small, kernel_size=[3], stride=[50], ceiling=True), [100.0] * 4)
    assert run("adaptive_avg_pool", large, sizes=[1]).tolist() == [2.0**62]
    assert run("adaptive_avg_pool", small, sizes=[1]).tolist() == [100.0]


def test_input_must_have_entries_and_fit_a_window() -> None:
    assert run("max_pool1d", np.ones((2, 1)), kernel_size=[1]).tolist() == [[1.0], [1.0]]
    for x, attrs in (
        (np.ones((2, 0)), {"kernel_size": [2], "padding": [1]}),
        (np.ones((2, 3)), {"kernel_size": [4]}),
        (np.ones(()), {"kernel_size": [1]}),
    ):
        refused = error("max_pool1d", x, **attrs)
        assert (refused.code, refused.operand) == ("shape_mismatch", 0)


def test_adaptive_windows_need_non_empty_axes() -> None:
    for name in ("adaptive_max_pool", "adaptive_avg_pool"):
        assert run(name, np.full((2, 1), 3.0), sizes=[1, 2]).tolist() == [[3.0, 3.0]]
        assert error(name, np.ones(3), sizes=[]).code == "bad_attribute"
        refused = error(name, np.ones((2, 0)), sizes=[1])
        assert (refused.code, refused.operand) == ("shape_mismatch", 0)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("dilated", [False, True])
def test_default_padding_and_dilation(rank: int, dilated: bool) -> None:
    attrs = _attrs(rank, dilated=dilated)
    assert (attrs["padding"].default, attrs["padding"].minimum) == ((0,) * rank, 0)
    assert ("dilation" in attrs) == dilated
    if dilated:
        assert (attrs["dilation"].default, attrs["dilation"].minimum) == ((1,) * rank, 1)
