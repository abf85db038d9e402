"""Sums over the axes around channels: accurate, and with the same bits however items are divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codegen.microkernels.axis_kernels import as_channel_sums, channel_sums
from engine.compiler.recipes import recipe_for
from engine.ir.tensor_type import Strided, TensorType
from engine.ops import registry
from tests.engine.codegen.microkernels.running import AVX2, Array, bits, run_recipe

pytest.importorskip("llvmlite")

FLOATS = ("float32", "float64")


def summed(x: Array, axes: tuple[int, ...], **how: object) -> Array:
    sums = as_channel_sums(x.dtype.name, x.itemsize, x.shape, x.strides, axes)
    assert sums is not None
    shape = tuple(extent for i, extent in enumerate(x.shape) if i not in axes)
    return run_recipe(channel_sums(sums), [x], shape, x.dtype, **how)  # type: ignore[arg-type]


@pytest.mark.slow
@given(
    dtype=st.sampled_from(FLOATS),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.integers(1, 90)),
    axes=st.sampled_from([(0, 2, 3), (0, 3)]),
    seed=st.integers(0, 99),
)
def test_sums_are_accurate(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], seed: int) -> None:
    """Reversed channels and shorter vectors give the same bits."""
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    actual, n = summed(x, axes), x.size
    exact = x.astype(np.longdouble).sum(axis=axes)
    assert np.all(abs(actual - exact) <= n * np.finfo(dtype).eps * abs(x).astype(np.longdouble).sum(axis=axes))
    assert bits(summed(x, axes, order=lambda count: reversed(range(count)))) == bits(actual)
    assert bits(summed(x, axes, processor=AVX2)) == bits(actual)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_stay_in_their_channel(value: float) -> None:
    x = np.ones((3, 4, 5, 37))
    x[2, 1, 4, 36] = value
    actual = summed(x, (0, 2, 3))
    assert actual[[0, 2, 3]].tolist() == [3.0 * 5 * 37] * 3
    np.testing.assert_equal(actual[1], value)


def test_supported_layouts_and_axes() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6, 8, 40))
    np.testing.assert_allclose(summed(x[1:3, ::2], (0, 2, 3)), x[1:3, ::2].sum(axis=(0, 2, 3)), rtol=1e-12)
    op, axes = registry().ops["sum"], (0, 2, 3)
    types = {layout: Strided(TensorType.of(view), view.strides) for layout, view in _layouts(x).items()}
    out = TensorType((6,), np.dtype("float64"))
    has_recipe = {
        layout: recipe_for(op, "cpu", out, t, axes=axes, keepdims=False) is not None for layout, t in types.items()
    }
    assert has_recipe == {"dense": True, "turned": False, "every second": False}
    for others in ((0, 1), (2, 3), (0, 2), (0, 1, 2, 3)):
        assert as_channel_sums("float64", 8, x.shape, x.strides, others) is None


def _layouts(x: Array) -> dict[str, Array]:
    return {"dense": x, "turned": x.swapaxes(2, 3), "every second": np.repeat(x, 2, axis=3)[..., ::2]}
