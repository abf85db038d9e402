"""Recipes run as plans run them, between guards: nobody writes beside a result, or beyond the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from engine.loops.machine_code import machine_code
from engine.loops.native_call import NativeCall
from engine.microkernels.binding import bind_recipe, load_phase
from engine.microkernels.recipe import Recipe

Array = np.ndarray[Any, Any]
#: bytes around a result and behind the workspace that nobody may write
GUARD = 256
_UNTOUCHED = 0xA5


def made(
    recipe: Recipe,
    operands: Sequence[Array],
    shape: Sequence[int],
    threads: int = 1,
    processor: tuple[str, str] | None = None,
    *,
    backwards: bool = False,
) -> Array:
    """The result, of the first operand's dtype; `backwards`: item by item, from the last to the first of each phase.

    A recipe that is checked and does not hold gives NaN everywhere.
    """
    dtype = operands[0].dtype
    codes = [load_phase(_code(phase.text, processor)) for phase in recipe.phases]
    size = recipe.workspace(threads)
    space = _guarded(size)
    nbytes = int(np.prod(shape)) * dtype.itemsize
    memory = _guarded(nbytes)
    out = memory[GUARD : GUARD + nbytes].view(dtype).reshape(tuple(shape))
    again = [(out.fill, (np.nan,))]
    for call, arguments in bind_recipe(codes, recipe, operands, out, threads, space[GUARD : GUARD + size], again):
        if isinstance(call, NativeCall) and backwards:
            for item in reversed(range(call.items)):
                call.function(item, item + 1, call.entries[0].ctypes.data)
        else:
            call(*arguments)
    for guarded in (space, memory):
        assert (guarded[:GUARD] == _UNTOUCHED).all()
        assert (guarded[-GUARD:] == _UNTOUCHED).all()
    return out


@cache
def _code(text: str, processor: tuple[str, str] | None) -> bytes:
    return machine_code(text, processor)


def _guarded(nbytes: int) -> Array:
    """Bytes with GUARD others on each side, on a line of the cache."""
    whole = np.full(nbytes + 2 * GUARD + 64, _UNTOUCHED, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + nbytes + 2 * GUARD]


def lines(x: Array) -> Iterator[Array]:
    """x as it is, and lying in other ways: the last axis strided, turned round, axes in another order."""
    yield x
    yield np.asfortranarray(x)
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan, x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
