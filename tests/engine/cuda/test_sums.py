"""Sums over axes on a card, against NumPy's in float64."""

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
#: additions in a row that a sum here takes at most: it is as exact as that many allow
IN_A_ROW = 200
PLENTY = 1 << 22
each_dtype = pytest.mark.parametrize("dtype", FLOATS)


def recipe_of(x: Array, axes: tuple[int, ...], workspace: int = PLENTY, divisor: int = 1) -> CardRecipe | None:
    of = SummedAxes.over(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return axis_sum_recipe(of, workspace, divisor)


def kept(x: Array, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(x.shape) if axis not in axes)


def check(x: Array, axes: tuple[int, ...], divisor: int = 1) -> Array:
    """Within n·ε·Σ|x| (Higham 2002, §4.2), and half a unit of float16."""
    recipe = recipe_of(x, axes, divisor=divisor)
    assert recipe is not None
    found = run_card_recipe(recipe, x.dtype.name, (x,), kept(x, axes))
    wide = np.float64 if x.dtype != np.float64 else np.longdouble
    exact, most = (np.sum(each.astype(wide), axis=axes) / divisor for each in (x, abs(x)))
    eps = np.finfo(np.float32 if x.dtype == np.float16 else x.dtype).eps
    bound = IN_A_ROW * eps * most
    if x.dtype == np.float16:
        bound = bound + abs(exact) * 2.0**-11 + 2.0**-25
    np.testing.assert_array_less(abs(found - exact), bound.astype(np.float64) + 1e-300)
    return found


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
def test_means_are_divided_before_they_are_rounded(dtype: str) -> None:
    x = np.full((3, 4096), 100, dtype)
    np.testing.assert_array_equal(check(x, (1,), 4096), np.full(3, 100))
    check(normal(70, 40, dtype=dtype), (0,), 70)


@pytest.mark.parametrize(("shape", "axes"), [((0, 3), (1,)), ((3, 0), (1,)), ((0,), (0,)), ((3, 0, 2), (0, 1))])
def test_of_nothing(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    recipe = recipe_of(x, axes)
    assert recipe is not None
    np.testing.assert_array_equal(run_card_recipe(recipe, "float64", (x,), kept(x, axes)), np.sum(x, axis=axes))
    mean = recipe_of(x, axes, divisor=int(np.prod([shape[a] for a in axes])))
    assert mean is not None
    assert np.isnan(run_card_recipe(mean, "float64", (x,), kept(x, axes))).all()


def test_few_numbers_are_cut_into_parts_and_many_are_not() -> None:
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


def test_a_long_sum_is_exact_to_as_many_additions_as_are_in_a_row() -> None:
    """Each number by one thread alone: 8,192 thirds in a row would be further off."""
    x = np.full((1 << 13, 3), 1 / 3, np.float32)
    with patch("engine.cuda.sums._BUSY", 1):
        recipe = recipe_of(x, (0,))
        assert recipe is not None
        assert len(recipe.phases) == 1
        check(x, (0,))


@pytest.mark.parametrize(("shape", "axes"), SHAPES[:8])
def test_where_32_bits_are_not_enough_64_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
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
def test_nvrtc_compiles_them(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, wide: bool, architecture: str
) -> None:
    with patch("engine.cuda.sums.is_wide", return_value=wide):
        recipe = recipe_of(np.zeros(shape, dtype), axes)
    assert recipe is not None
    assert compiled_for(recipe.text, architecture).startswith(b"\x7fELF")
