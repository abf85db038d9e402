"""Sums over axes on a card, against NumPy in float64."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cuda.card_recipe import CardRecipe
from engine.cuda.sums import SummedAxes, axis_sum_recipe
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.codegen.microkernels.layouts import lines
from tests.engine.cuda.running import Array, compiled_for, run_card_recipe

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

FLOATS = ("float16", "float32", "float64")
#: most additions in a row within one sum, which bound its error
LONGEST_CHAIN = 200
PLENTY = 1 << 22
each_dtype = pytest.mark.parametrize("dtype", FLOATS)


def recipe_of(x: Array, axes: tuple[int, ...], workspace: int = PLENTY, divisor: int = 1) -> CardRecipe | None:
    summed = SummedAxes.over(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return axis_sum_recipe(summed, workspace, divisor)


def result_shape(x: Array, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(x.shape) if axis not in axes)


def check(x: Array, axes: tuple[int, ...], divisor: int = 1) -> Array:
    """Check the sum within n·ε·Σ|x| (Higham 2002, §4.2), plus half a unit of float16."""
    recipe = recipe_of(x, axes, divisor=divisor)
    assert recipe is not None
    actual = run_card_recipe(recipe, x.dtype.name, (x,), result_shape(x, axes))
    wide = np.float64 if x.dtype != np.float64 else np.longdouble
    exact, magnitude = (np.sum(each.astype(wide), axis=axes) / divisor for each in (x, abs(x)))
    eps = np.finfo(np.float32 if x.dtype == np.float16 else x.dtype).eps
    bound = LONGEST_CHAIN * eps * magnitude
    if x.dtype == np.float16:
        bound = bound + abs(exact) * 2.0**-11 + 2.0**-25
    np.testing.assert_array_less(abs(actual - exact), bound.astype(np.float64) + 1e-300)
    return actual


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((5, 7), (0,)),
    ((5, 7), (1,)),
    ((5, 7), ()),
    ((5, 7), (0, 1)),
    ((4, 6, 5, 7), (0, 2, 3)),
    ((4, 6, 5, 7), (1,)),
    ((4, 6, 5, 7), (0, 2)),
    ((3, 300, 2), (1,)),
    ((9000,), (0,)),
    ((3, 5000), (1,)),
    ((5000, 3), (0,)),
    ((40, 3, 40), (0, 2)),
)


@each_dtype
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_sums_over_axes(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    check(normal(*shape, dtype=dtype), axes)


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_any_axes_and_layouts(data: st.DataObject) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1)))))
    for x in lines(normal(*shape, dtype=draw(st.sampled_from(FLOATS)))):
        check(x, axes)


@each_dtype
def test_means_divide_before_rounding(dtype: str) -> None:
    x = np.full((3, 4096), 100, dtype)
    np.testing.assert_array_equal(check(x, (1,), 4096), np.full(3, 100))
    check(normal(70, 40, dtype=dtype), (0,), 70)


@pytest.mark.parametrize(("shape", "axes"), [((0, 3), (1,)), ((3, 0), (1,)), ((0,), (0,)), ((3, 0, 2), (0, 1))])
def test_empty_sums_and_means(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    recipe = recipe_of(x, axes)
    assert recipe is not None
    np.testing.assert_array_equal(run_card_recipe(recipe, "float64", (x,), result_shape(x, axes)), np.sum(x, axis=axes))
    mean = recipe_of(x, axes, divisor=int(np.prod([shape[a] for a in axes])))
    assert mean is not None
    assert np.isnan(run_card_recipe(mean, "float64", (x,), result_shape(x, axes))).all()


def test_few_long_sums_are_split_into_parts() -> None:
    for shape, axes, launches in (
        ((3, 5000), (1,), 2),
        ((2, 40), (1,), 1),
        ((50, 70000), (0,), 1),
        ((70000, 50), (1,), 1),
    ):
        recipe = recipe_of(np.zeros(shape), axes)
        assert recipe is not None
        assert len(recipe.phases) == launches
        assert (recipe.workspace > 0) == (launches > 1)
    assert recipe_of(np.zeros((3, 5000)), (1,), workspace=100) is None


def test_long_sum_error_is_bounded_by_its_longest_chain() -> None:
    """One thread computes each result: 8,192 thirds in a row would exceed the bound."""
    x = np.full((1 << 13, 3), 1 / 3, np.float32)
    with patch("engine.cuda.sums._BUSY", 1):
        recipe = recipe_of(x, (0,))
        assert recipe is not None
        assert len(recipe.phases) == 1
        check(x, (0,))


@pytest.mark.parametrize(("shape", "axes"), SHAPES[:8])
def test_large_sizes_use_64_bit_counters(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    with patch("engine.cuda.sums.is_wide", return_value=True):
        check(normal(*shape), axes)


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "wide"),
    [
        ((3, 5000), (1,), "float16", False),
        ((5000, 3), (0,), "float64", False),
        ((4, 6, 5, 7), (0, 2), "float32", False),
        ((4, 6, 5, 7), (0, 2), "float16", True),
    ],
)
def test_nvrtc_compiles_the_kernels(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, wide: bool, architecture: str
) -> None:
    with patch("engine.cuda.sums.is_wide", return_value=wide):
        recipe = recipe_of(np.zeros(shape, dtype), axes)
    assert recipe is not None
    assert compiled_for(recipe.text, architecture).startswith(b"\x7fELF")
