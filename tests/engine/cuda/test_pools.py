"""Pooling on a card: bit-identical to the NumPy ops, for all windows and values."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen.microkernels.product import MatrixLayout
from engine.codegen.microkernels.windows import DirectedPool, PoolGeometry
from engine.compiler.geometry import geometry_of
from engine.cuda.card_recipe import CardRecipe
from engine.cuda.cudnn_recipes import CardTerms
from engine.cuda.pooling import pool_card_recipe
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.codegen.microkernels.products import LIES
from tests.engine.codegen.microkernels.test_pooling import SPECIAL, Case, case
from tests.engine.cuda.running import Array, compiled_for, run_card_recipe

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

POOLS = ("max_pool2d", "max_pool2d_indices", "avg_pool2d", "max_pool2d_back")
FLOATS = ("float16", "float32", "float64")
PLENTY = 1 << 24
each_pool = pytest.mark.parametrize("name", POOLS)
each_dtype = pytest.mark.parametrize("dtype", FLOATS)


def recipe_of(pool: Case, workspace: int = PLENTY) -> CardRecipe | None:
    types = [Strided(TensorType.of(x), x.strides) for x in pool.operands]
    geometry = geometry_of(pool.op, pool.type, *types, **pool.attrs)
    assert isinstance(geometry, DirectedPool)
    return pool_card_recipe(CardTerms(workspace=workspace), geometry)


def pooled(pool: Case, workspace: int = PLENTY) -> Array:
    recipe = recipe_of(pool, workspace)
    assert recipe is not None
    assert recipe.workspace <= workspace
    return run_card_recipe(recipe, pool.operands[-1].dtype.name, pool.operands, pool.type.shape, pool.type.dtype)


def assert_same_bits(actual: Array, expected: Array) -> None:
    """Compare bit for bit; all NaNs are equal."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))


@st.composite
def cases(draw: Any, name: str) -> Case:
    batch, extents = draw(st.lists(st.integers(0, 3), max_size=3)), [draw(st.integers(1, 12)) for _ in range(2)]
    size = [draw(st.integers(1, min(n, 6))) for n in extents]
    attrs = {
        "kernel_size": tuple(size),
        "stride": (draw(st.integers(1, 5)), draw(st.integers(1, 5))),
        "padding": tuple(draw(st.integers(0, k // 2)) for k in size),
    }
    seed = draw(st.integers(0, 2**16))
    random, shape = np.random.default_rng(seed), (*batch, *extents)
    x = random.choice(SPECIAL, shape) if draw(st.booleans()) else random.normal(size=shape)
    return case(name, x.astype(draw(st.sampled_from(FLOATS))), draw(st.sampled_from(LIES)), seed, **attrs)


@pytest.mark.slow
@each_pool
@settings(max_examples=60)
@given(data=st.data())
def test_pools_match_numpy_bit_for_bit(name: str, data: st.DataObject) -> None:
    pool = data.draw(cases(name))
    assert_same_bits(pooled(pool), pool.expected())


@each_dtype
@each_pool
@pytest.mark.parametrize(
    ("kernel_size", "stride", "padding"),
    [((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (0, 0)), ((2, 3), (3, 5), (1, 0)), ((3, 2), (1, 1), (1, 1))],
)
def test_ties_and_non_finite_values(
    name: str, dtype: str, kernel_size: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
) -> None:
    x = np.random.default_rng(1).choice(SPECIAL, (2, 3, 11, 13)).astype(dtype)
    pool = case(name, x, kernel_size=kernel_size, stride=stride, padding=padding)
    assert_same_bits(pooled(pool), pool.expected())


@each_dtype
@each_pool
def test_windows_of_padding_and_lowest_values(name: str, dtype: str) -> None:
    """Padding is never the maximum, not even among values of −∞."""
    for value in (-np.inf, -0.0, np.nan):
        pool = case(name, np.full((3, 5, 4), value, dtype), kernel_size=(4, 3), stride=(1, 2), padding=(2, 1))
        assert_same_bits(pooled(pool), pool.expected())


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 3, 5)])
@each_pool
def test_empty_batch_launches_nothing(name: str, shape: tuple[int, ...]) -> None:
    pool = case(name, np.zeros(shape), kernel_size=(2, 2))
    recipe = recipe_of(pool)
    assert recipe is not None
    assert not recipe.phases


@each_dtype
def test_max_pool_gradient_accumulates_in_float32(dtype: str) -> None:
    x = np.zeros((1, 3, 3), dtype)
    x[0, 1, 1] = 1
    pool = case("max_pool2d_back", x, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    g = np.array([2048, 1, 1, 1, 0, 0, 0, 0, 0], dtype).reshape(1, 3, 3)
    result = pooled(pool._replace(operands=(g, x)))
    assert result[0, 1, 1] == np.dtype(dtype).type(2051)


@pytest.mark.parametrize(
    ("kernel_size", "stride", "launches"),
    [((2, 2), (2, 2), 1), ((3, 3), (2, 2), 1), ((2, 5), (3, 5), 1), ((3, 3), (1, 1), 2), ((7, 7), (7, 7), 2)],
)
def test_small_windows_find_maxima_in_one_launch(
    kernel_size: tuple[int, int], stride: tuple[int, int], launches: int
) -> None:
    x = np.random.default_rng(4).choice(SPECIAL, (3, 14, 15))
    pool = case("max_pool2d_back", x, "apart", kernel_size=kernel_size, stride=stride)
    recipe = recipe_of(pool)
    assert recipe is not None
    assert len(recipe.phases) == launches
    assert (recipe.workspace == 0) is (launches == 1)
    assert_same_bits(pooled(pool), pool.expected())


def test_small_workspace_processes_planes_in_pieces() -> None:
    x = np.random.default_rng(2).normal(size=(2, 5, 7, 6))
    pool = case("max_pool2d_back", x, kernel_size=(3, 3), stride=(1, 1))
    places = pool.operands[0][0, 0].size * 4
    recipe = recipe_of(pool, 3 * places + 2)
    assert recipe is not None
    assert len(recipe.phases) == 8
    assert_same_bits(pooled(pool, 3 * places + 2), pool.expected())
    assert recipe_of(pool, places - 1) is None


@each_pool
def test_large_sizes_use_64_bit_counters(name: str) -> None:
    x = np.random.default_rng(2).normal(size=(2, 5, 7, 6))
    pool = case(name, x, kernel_size=(3, 3), stride=(2, 2))
    with patch("engine.cuda.pooling.is_wide", return_value=True):
        recipe = recipe_of(pool)
        assert recipe is not None
        assert "typedef long long S" in recipe.text
        assert_same_bits(pooled(pool), pool.expected())


def test_offsets_beyond_64_bits_have_no_recipe() -> None:
    geometry = PoolGeometry("float32", 4, (2,), (4, 4), (1, 1), (2, 2), (1, 2**61), (0, 0), MatrixLayout(16, 4, (64,)))
    assert pool_card_recipe(CardTerms(workspace=PLENTY), DirectedPool(geometry, "max")) is None


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@each_dtype
@pytest.mark.parametrize("shape", [(6, 5), (2, 3, 6, 5)])
def test_nvrtc_compiles_the_kernels(shape: tuple[int, ...], dtype: str, architecture: str) -> None:
    x = np.zeros((*shape[:-2], 6, 5), dtype)
    for wide in (False, True):
        with patch("engine.cuda.pooling.is_wide", return_value=wide):
            recipe = recipe_of(case("max_pool2d_back", x, kernel_size=(2, 2)))
        assert recipe is not None
        assert compiled_for(recipe.text, architecture).startswith(b"\x7fELF")
