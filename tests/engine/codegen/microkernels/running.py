"""Run recipes on their own, and check the memory that they write and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from engine.codegen.microkernels.recipe import Recipe, bind_recipe
from engine.codegen.native.machine_code import machine_code
from engine.codegen.native.native_call import NativeCall, load_kernel
from engine.ir.op import KernelCall
from tests.engine.guarded import guarded

Array = np.ndarray[Any, Any]
#: a processor with vectors of 32 bytes and without masks
AVX2 = ("x86-64-v3", "")
#: guard bytes around a result and the workspace
GUARD = 256
_UNTOUCHED = 0xA5


def run_recipe(
    recipe: Recipe,
    operands: Sequence[Array],
    shape: tuple[int, ...],
    dtype: Any,
    *,
    threads: int = 1,
    processor: tuple[str, str] | None = None,
    order: Callable[[int], Iterable[int]] | None = None,
) -> Array:
    """Run a recipe, item by item in each phase if there is an `order`. Only result and workspace may be written.

    The workspace ends at an unreadable page, so reads beyond it fail, too.

    A recipe that is checked and does not hold gives NaN everywhere.
    """
    size, nbytes = recipe.workspace(threads), int(np.prod(shape)) * np.dtype(dtype).itemsize
    space = guarded(np.full(GUARD + size, _UNTOUCHED, np.uint8))
    memory = _surrounded(nbytes)
    out = memory[GUARD : GUARD + nbytes].view(dtype).reshape(shape)
    codes = [load_kernel(_code(phase.text, processor)) for phase in recipe.phases]
    for call, arguments in bind_recipe(codes, recipe, operands, out, threads, space[GUARD:], _fill_with_nan):
        if order is None or not isinstance(call, NativeCall):
            call(*arguments)
            continue
        for item in order(call.items):
            call.function(item, item + 1, call.entries[0].ctypes.data)
    for guard in (space[:GUARD], memory[:GUARD], memory[-GUARD:]):
        assert (guard == _UNTOUCHED).all()
    return out


def _fill_with_nan(_: Sequence[Array], results: Sequence[Array]) -> Sequence[KernelCall]:
    return [(results[0].fill, (np.nan,))]


@cache
def _code(text: str, processor: tuple[str, str] | None) -> bytes:
    return machine_code(text, processor)


def _surrounded(nbytes: int) -> Array:
    """Allocate bytes with GUARD bytes on each side, aligned to a cache line."""
    whole = np.full(nbytes + 2 * GUARD + 64, _UNTOUCHED, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + nbytes + 2 * GUARD]


def bits(x: Array) -> bytes:
    """Return the bytes of numbers, with one NaN for all NaN."""
    return np.where(np.isnan(x), np.nan, x).astype(x.dtype).tobytes()
