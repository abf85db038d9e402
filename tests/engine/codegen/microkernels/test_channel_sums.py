"""Sums over the axes before and behind some: right, and the same bits however items are divided."""

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
    of = as_channel_sums(x.dtype.name, x.itemsize, x.shape, x.strides, axes)
    assert of is not None
    shape = tuple(extent for i, extent in enumerate(x.shape) if i not in axes)
    return run_recipe(channel_sums(of), [x], shape, x.dtype, **how)  # type: ignore[arg-type]


@pytest.mark.slow
@given(
    dtype=st.sampled_from(FLOATS),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.integers(1, 90)),
    axes=st.sampled_from([(0, 2, 3), (0, 3)]),
    seed=st.integers(0, 99),
)
def test_sums_are_right(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], seed: int) -> None:
    """And channel by channel, from the last to the first, and with shorter vectors, to the bit."""
    x = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    found, n = summed(x, axes), x.size
    exact = x.astype(np.longdouble).sum(axis=axes)
    assert np.all(abs(found - exact) <= n * np.finfo(dtype).eps * abs(x).astype(np.longdouble).sum(axis=axes))
    assert bits(summed(x, axes, order=lambda count: reversed(range(count)))) == bits(found)
    assert bits(summed(x, axes, processor=AVX2)) == bits(found)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_channel(value: float) -> None:
    x = np.ones((3, 4, 5, 37))
    x[2, 1, 4, 36] = value
    found = summed(x, (0, 2, 3))
    assert found[[0, 2, 3]].tolist() == [3.0 * 5 * 37] * 3
    np.testing.assert_equal(found[1], value)


def test_channels_may_lie_apart_and_others_are_left_to_loops() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6, 8, 40))
    np.testing.assert_allclose(summed(x[1:3, ::2], (0, 2, 3)), x[1:3, ::2].sum(axis=(0, 2, 3)), rtol=1e-12)
    op, axes = registry().ops["sum"], (0, 2, 3)
    types = {lies: Strided(TensorType.of(lies_), lies_.strides) for lies, lies_ in _layouts(x).items()}
    out = TensorType((6,), np.dtype("float64"))
    found = {lies: recipe_for(op, "cpu", out, t, axes=axes, keepdims=False) is not None for lies, t in types.items()}
    assert found == {"dense": True, "turned": False, "every second": False}
    for others in ((0, 1), (2, 3), (0, 2), (0, 1, 2, 3)):
        assert as_channel_sums("float64", 8, x.shape, x.strides, others) is None


def _layouts(x: Array) -> dict[str, Array]:
    return {"dense": x, "turned": x.swapaxes(2, 3), "every second": np.repeat(x, 2, axis=3)[..., ::2]}
