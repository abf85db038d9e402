"""Gather on a card: matches NumPy for any layout, and flags indices out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import registry
from engine.cuda.binding import card_recipe_for
from engine.cuda.card_recipe import CardRecipe
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.cuda.running import Array, CardRun, compiled_for, run_card_recipe

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
FLOATS = ("float16", "float32", "float64")
INDICES = ("int8", "uint8", "int32", "uint32", "int64")


def recipe_of(x: Array, *index: Array, axis: int, out: TensorType | None = None) -> CardRecipe | None:
    result = out or TensorType(index[0].shape, x.dtype)
    types = (Strided(TensorType.of(each), each.strides) for each in (x, *index))
    return card_recipe_for(registry().ops["gather"], CardTerms(), result, *types, axis=axis)


def gathered(x: Array, index: Array, axis: int) -> Array:
    recipe = recipe_of(x, index, axis=axis)
    assert recipe is not None
    assert len(recipe.phases) == 1
    return run_card_recipe(recipe, x.dtype.name, (x, index), index.shape)


def expected(x: Array, index: Array, axis: int) -> Array:
    covered = tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(index.shape))
    return np.take_along_axis(x[covered], index.astype("int64"), axis)


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("index", INDICES)
def test_gather_matches_numpy(dtype: str, index: str) -> None:
    random = np.random.default_rng(0)
    x, indices = random.normal(size=(4, 90, 5)).astype(dtype), random.integers(0, 90, (4, 7, 5)).astype(index)
    np.testing.assert_array_equal(gathered(x, indices, 1), expected(x, indices, 1))


@needs_compiler
@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_any_axes_and_layouts(data: st.DataObject) -> None:
    draw = data.draw
    rank = draw(st.integers(1, 3))
    axis, shape = draw(st.integers(0, rank - 1)), [draw(st.integers(1, 5)) for _ in range(rank)]
    covered = [draw(st.integers(1, n)) for n in shape]
    covered[axis] = draw(st.integers(1, 9))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    order = random.permutation(rank)
    x = random.normal(size=[2 * shape[a] for a in order]).transpose(np.argsort(order))
    x = x[tuple(slice(None, None, -2) if draw(st.booleans()) else slice(n) for n in shape)]
    whole = [1 if draw(st.booleans()) and a != axis else n for a, n in enumerate(covered)]
    indices = np.broadcast_to(random.integers(0, shape[axis], whole), covered)
    np.testing.assert_array_equal(gathered(x, indices, axis), expected(x, indices, axis))


@needs_compiler
@pytest.mark.parametrize("outside", [-1, 9, -(2**31) - 3, 2**62])
def test_out_of_range_index_is_flagged(outside: int) -> None:
    x, indices = np.ones((9, 2), "float32"), np.zeros((3, 2), "int64")
    indices[1, 1] = outside
    recipe = recipe_of(x, indices, axis=0)
    assert recipe is not None
    assert recipe.notes
    result = np.full((3, 2), np.nan, "float32")
    run = CardRun(recipe, "float32", (x, indices), result)
    run.run()
    assert run.flag == 2
    np.testing.assert_array_equal(result, [[1, 1], [1, 0], [1, 1]])


@needs_compiler
def test_empty_index_and_empty_axis() -> None:
    assert recipe_phases(np.ones((4, 3), "float32"), np.zeros((0, 3), "int64")) == ()
    recipe = recipe_of(np.ones((0, 3), "float32"), np.zeros((2, 3), "int64"), axis=0)
    assert recipe is not None  # every index is out of range
    run = CardRun(recipe, "float32", (np.ones(1, "float32"), np.zeros((2, 3), "int64")), np.ones((2, 3), "float32"))
    run.run()
    assert run.flag == 2


def recipe_phases(x: Array, index: Array) -> Any:
    recipe = recipe_of(x, index, axis=0)
    return recipe and recipe.phases


def test_index_lists_and_integers_have_no_recipe() -> None:
    x = np.ones((4, 3), "float32")
    assert recipe_of(x, axis=0, out=TensorType((2, 3), x.dtype)) is None
    assert recipe_of(x.astype("int64"), np.zeros((2, 3), "int64"), axis=0) is None
    assert recipe_of(x, np.zeros((2, 3), "int16"), axis=0) is None


@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("dtype", FLOATS)
def test_nvrtc_compiles_the_kernel(dtype: str) -> None:
    recipe = recipe_of(np.ones((4, 3), dtype), np.zeros((2, 3), "int64"), axis=0)
    assert recipe is not None
    assert compiled_for(recipe.text, "sm_90").startswith(b"\x7fELF")
