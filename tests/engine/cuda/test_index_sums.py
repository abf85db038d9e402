"""Scatter-add on a card: bit-identical to sequential addition, and flags indices out of range."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import TensorType, registry
from engine.codegen.microkernels.indexing import ScatterAddGeometry
from engine.cuda.card_recipe import CardPlace, CardRecipe
from engine.cuda.gather_scatter import adding_of_segments, index_sum_recipe
from engine.ir.run_context import RunContext
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.cuda.running import Array, CardRun, compiled_for, run_card_recipe

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

FLOATS = ("float16", "float32", "float64")
INDICES = ("int8", "uint8", "int32", "uint32", "int64")
PLENTY = 1 << 22
each_dtype = pytest.mark.parametrize("dtype", FLOATS)
#: indices of a row: few, up to a linear search, more than a sorted run, several merges, and an unpaired run
COUNTS = (0, 1, 64, 65, 256, 257, 700, 1300)


def geometry(x: Array, index: Array, updates: Array, axis: int, y: Array | None = None) -> ScatterAddGeometry:
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    dense = np.empty(x.shape, x.dtype) if y is None else y
    strides = [tuple(array.strides[a] for a in order) for array in (x, index, updates, dense)]
    rows = tuple(x.shape[a] for a in order[:-1])
    bits = index.dtype.itemsize, index.dtype.kind == "i"
    return ScatterAddGeometry(x.dtype.name, x.dtype.itemsize, rows, x.shape[axis], index.shape[axis], *strides, *bits)


def scattered(x: Array, index: Array, updates: Array, axis: int, workspace: int = PLENTY) -> Array:
    recipe = index_sum_recipe(geometry(x, index, updates, axis), workspace)
    assert recipe is not None
    assert recipe.workspace <= workspace
    return run_card_recipe(recipe, x.dtype.name, (x, index, updates), x.shape)


def expected(x: Array, index: Array, updates: Array, axis: int) -> Array:
    op: Any = registry().ops["scatter_add"]
    out = np.empty_like(x, order="C")
    with np.errstate(all="ignore"):
        op.forward(RunContext(np), x, index, updates, out=out, axis=axis)
    return out


def assert_same_bits(actual: Array, expected: Array) -> None:
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


def rows(count: int, dtype: str, seed: int = 0, extent: int = 9, index: str = "int64") -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(2, 3, extent)).astype(dtype)
    indices = random.integers(0, extent, (2, 3, count)).astype(index)
    return x, indices, random.normal(size=indices.shape).astype(dtype)


def table(count: int, dtype: str, features: tuple[int, ...] = (5,), extent: int = 11) -> tuple[Array, Array, Array]:
    """Operands that add whole rows: all features share their indices."""
    random = np.random.default_rng(count)
    x = random.normal(size=(extent, *features)).astype(dtype)
    listed = random.integers(0, extent, count).reshape(count, *[1] * len(features))
    return x, np.broadcast_to(listed, (count, *features)), random.normal(size=(count, *features)).astype(dtype)


@each_dtype
@pytest.mark.parametrize("count", COUNTS)
def test_rows_match_sequential_addition_bit_for_bit(count: int, dtype: str) -> None:
    case = rows(count, dtype)
    assert_same_bits(scattered(*case, 2), expected(*case, 2))


@each_dtype
@pytest.mark.parametrize("count", COUNTS)
def test_table_matches_sequential_addition_bit_for_bit(count: int, dtype: str) -> None:
    case = table(count, dtype)
    assert_same_bits(scattered(*case, 0), expected(*case, 0))


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_any_axes_and_layouts(data: st.DataObject) -> None:
    draw = data.draw
    rank = draw(st.integers(1, 3))
    axis, shape = draw(st.integers(0, rank - 1)), [draw(st.integers(1, 4)) for _ in range(rank)]
    random = np.random.default_rng(draw(st.integers(0, 99)))
    covered = list(shape)
    covered[axis] = draw(st.sampled_from((3, 64, 70, 600)))
    dtype, whole = (
        draw(st.sampled_from(FLOATS)),
        [1 if draw(st.booleans()) and i != axis else n for i, n in enumerate(covered)],
    )
    index = np.broadcast_to(random.integers(0, shape[axis], whole), covered).astype(
        draw(st.sampled_from(INDICES)), order="K"
    )
    order = random.permutation(rank)
    x = random.normal(size=[shape[a] for a in order]).astype(dtype).transpose(np.argsort(order))
    updates = random.normal(size=[*covered[:-1], 2 * covered[-1]]).astype(dtype)[..., ::-2]
    assert_same_bits(scattered(x, index, updates, axis), expected(x, index, updates, axis))


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("count", [7, 300])
def test_every_index_dtype(count: int, index: str) -> None:
    case = rows(count, "float64", extent=101, index=index)
    assert_same_bits(scattered(*case, 2), expected(*case, 2))


def test_equal_indices_and_distinct_indices() -> None:
    x, _, updates = rows(600, "float32", extent=601)
    for index in (np.zeros((2, 3, 600), np.int64), np.broadcast_to(np.arange(600)[::-1], (2, 3, 600))):
        assert_same_bits(scattered(x, index, updates, 2), expected(x, index, updates, 2))


@pytest.mark.parametrize("keys", [6 * 700, 1400, 700, 699, 100])
def test_pieces_fit_the_workspace_and_keep_the_order(keys: int) -> None:
    """A few rows at a time, or a part of the indices of one row."""
    case = rows(700, "float32")
    assert_same_bits(scattered(*case, 2, 16 * keys), expected(*case, 2))
    narrow = rows(700, "float16")
    recipe = index_sum_recipe(geometry(*narrow, 2), 16 * keys)
    assert (recipe is None) == (keys < 700)


def test_too_small_workspace_has_no_recipe() -> None:
    case = rows(700, "float32")
    assert index_sum_recipe(geometry(*case, 2), 0) is None
    assert index_sum_recipe(geometry(*case, 2), 16) is None


@each_dtype
@pytest.mark.parametrize("count", [5, 70, 300])
def test_segment_sum_starts_from_zeros(count: int, dtype: str) -> None:
    """Operand 0 has the rows to add, operand 1 their segment ids."""
    random = np.random.default_rng(count)
    x, ids = random.normal(size=(count, 4)).astype(dtype), random.integers(0, 7, count)
    x[:3] = -0.0
    types = (TensorType.of(array) for array in (np.empty((7, 4), dtype), x, ids))
    segments = adding_of_segments(*types)
    recipe = index_sum_recipe(segments, PLENTY, None, CardPlace("operand", 1), CardPlace("operand", 0))
    assert recipe is not None
    actual = run_card_recipe(recipe, dtype, (x, ids), (7, 4))
    op: Any = registry().ops["segment_sum"]
    out = np.empty((7, 4), dtype)
    op.forward(RunContext(np), x, ids, out=out, segments=7)
    assert_same_bits(actual, out)


def recorded_flag(case: tuple[Array, Array, Array], axis: int = 2) -> int:
    x, index, updates = case
    recipe = index_sum_recipe(geometry(x, index, updates, axis), PLENTY)
    assert recipe is not None
    run = CardRun(recipe, x.dtype.name, case, np.empty_like(x, order="C"))
    run.run()
    return run.flag


@pytest.mark.parametrize("outside", [-1, 9, 2**31, 2**40, -(2**62)])
@pytest.mark.parametrize("count", [7, 300])
def test_out_of_range_index_is_flagged_and_not_written(count: int, outside: int) -> None:
    case = rows(count, "float64")
    assert recorded_flag(case) == 0
    case[1][1, 2, count // 2] = outside
    assert recorded_flag(case) == 2


def test_out_of_range_index_does_not_affect_others() -> None:
    x, index, updates = rows(300, "float64")
    recipe = index_sum_recipe(geometry(x, index, updates, 2), PLENTY)
    assert recipe is not None
    index[0, 1, 7] = -3
    actual = np.empty_like(x)
    CardRun(recipe, "float64", (x, index, updates), actual).run()
    index[0, 1, 7], updates[0, 1, 7] = 0, 0
    assert_same_bits(actual, expected(x, index, updates, 2))


def test_shared_indices_are_sorted_once() -> None:
    recipes = [index_sum_recipe(geometry(*table(300, "float32", features), 0), PLENTY) for features in ((5,), (5, 8))]
    assert {recipe.workspace for recipe in recipes if recipe} == {2 * 8 * 300}


def test_no_rows_launch_nothing_and_empty_axis_has_no_recipe() -> None:
    x, index, updates = rows(7, "float32")
    empty = index_sum_recipe(geometry(x[:0], index[:0], updates[:0], 2), PLENTY)
    assert empty == CardRecipe(())
    assert index_sum_recipe(geometry(x[..., :0], index, updates, 2), PLENTY) is None


@pytest.mark.parametrize("count", [7, 300])
def test_large_sizes_use_64_bit_counters(count: int) -> None:
    case = table(count, "float64")
    with patch("engine.cuda.gather_scatter.is_wide", return_value=True):
        assert_same_bits(scattered(*case, 0), expected(*case, 0))


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("dtype", "index", "wide"),
    [*((dtype, "int64", False) for dtype in FLOATS), *(("float32", index, True) for index in INDICES)],
)
def test_nvrtc_compiles_the_kernels(dtype: str, index: str, wide: bool, architecture: str) -> None:
    with patch("engine.cuda.gather_scatter.is_wide", return_value=wide):
        recipe = index_sum_recipe(geometry(*rows(300, dtype, index=index), 2), PLENTY)
    assert recipe is not None
    assert compiled_for(recipe.text, architecture).startswith(b"\x7fELF")
