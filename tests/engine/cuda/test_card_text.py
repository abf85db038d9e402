"""The CUDA text of card kernels: float16 conversions, launch tables, and the width of counters."""

from __future__ import annotations

import numpy as np
import pytest

from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    Move,
    are_addressable,
    card_text,
    is_wide,
    launch_items,
    launch_lines,
    move_entries,
    move_kernels,
)
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.cuda.running import compiled_for, run_card_recipe

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def text_of(dtype: str) -> str:
    return card_text(dtype, move_entries(1), move_kernels(1, ("move", "round_off", "clear")), is_wide=False)


@needs_compiler
def test_float16_conversions_round_to_even() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numbers = halves[~np.isnan(halves)].astype(np.float32)
    between = (numbers[:-1] + numbers[1:])[np.isfinite(numbers[:-1] + numbers[1:])] / 2
    for x in (numbers, between.astype(np.float32), np.array([65519.9, 65520, 1e-8, 3e-8, -1e30], np.float32)):
        move = Move((len(x),), (4,), (2,))
        phase = move.phase("round_off", move_entries(1), CardPlace("operand"), CardPlace("result"))
        result = run_card_recipe(CardRecipe((phase,), text_of("float16")), "float16", (x,), x.shape)
        with np.errstate(over="ignore"):
            assert result.tobytes() == x.astype(np.float16).tobytes()


@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
def test_float16_is_converted_by_hardware_instructions() -> None:
    ptx = nvrtc.compiled(text_of("float16"), ("--gpu-architecture=compute_90",), ptx=True)
    assert b"cvt.rn.f16.f32" in ptx
    assert compiled_for(text_of("float16"), "sm_80").startswith(b"\x7fELF")


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_moves_preserve_every_bit(dtype: str) -> None:
    x = np.array([0.0, -0.0, np.nan, -np.inf, 1.5, 3.0], dtype).reshape(2, 3)
    move = Move((3, 2), x.strides[::-1], (2 * x.itemsize, x.itemsize))
    text = card_text(dtype, move_entries(2), move_kernels(2, ("move",)), is_wide=True)
    recipe = CardRecipe((move.phase("move", move_entries(2), CardPlace("operand"), CardPlace("result")),), text)
    assert run_card_recipe(recipe, dtype, (x,), (3, 2)).tobytes() == np.ascontiguousarray(x.T).tobytes()


def test_contiguous_axes_are_merged() -> None:
    assert Move((2, 1, 3), (12, 99, 4), (6, 99, 2)).merged() == Move((6,), (4,), (2,))
    assert Move((2, 3), (12, 4), (2, 4)).merged() == Move((2, 3), (12, 4), (2, 4))


def test_launch_tables_and_grids_have_valid_sizes() -> None:
    assert launch_items("k", 1000, 5, 1, 2).table == (1, 2, 0, 0, 0)
    assert launch_items("k", 1000, 5).grid == (4, 1)
    assert launch_items("k", 0, 5).grid == (1, 1)
    assert launch_items("k", 1 << 40, 5).grid[0] < 1 << 16
    assert launch_lines("k", 1 << 40, 3, 5).grid[1] < 1 << 16
    with pytest.raises(AssertionError):
        launch_items("k", 1, 1, 1, 2)


def test_counts_and_offsets_fit_their_integer_width() -> None:
    assert not is_wide(1 << 29, -5)
    assert is_wide(3, 1 << 31)
    assert are_addressable([(1 << 30, 8), (5, -(1 << 40))])
    assert not are_addressable([(1 << 30, 1 << 33)])
