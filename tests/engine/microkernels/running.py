"""Recipes run on their own, with a look at what they write and read."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from engine.graph.op import KernelCall
from engine.loops.machine_code import machine_code
from engine.loops.native_call import NativeCall
from engine.microkernels.binding import bind_recipe, load_phase
from engine.microkernels.recipe import Recipe

Array = np.ndarray[Any, Any]
#: a processor that has vectors of 32 bytes and no masks
AVX2 = ("x86-64-v3", "")
#: bytes around a result and the workspace that nobody may write
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
    """The result; with `order`, of the items of each phase one by one. Nothing but it and the workspace is written.

    The workspace ends where memory does: behind it nothing can be read, either.

    A recipe that is checked and does not hold gives NaN everywhere.
    """
    size, nbytes = recipe.workspace(threads), int(np.prod(shape)) * np.dtype(dtype).itemsize
    space, memory = _at_the_end(GUARD + size), _guarded(nbytes)
    out = memory[GUARD : GUARD + nbytes].view(dtype).reshape(shape)
    codes = [load_phase(_code(phase.text, processor)) for phase in recipe.phases]
    for call, arguments in bind_recipe(codes, recipe, operands, out, threads, space[GUARD:], _by_nothing):
        if order is None or not isinstance(call, NativeCall):
            call(*arguments)
            continue
        for item in order(call.items):
            call.function(item, item + 1, call.entries[0].ctypes.data)
    for guarded in (space[:GUARD], memory[:GUARD], memory[-GUARD:]):
        assert (guarded == _UNTOUCHED).all()
    return out


def _by_nothing(_: Sequence[Array], result: Array) -> Sequence[KernelCall]:
    return [(result.fill, (np.nan,))]


@cache
def _code(text: str, processor: tuple[str, str] | None) -> bytes:
    return machine_code(text, processor)


def _guarded(nbytes: int) -> Array:
    """Bytes with GUARD others on each side, on a line of the cache."""
    whole = np.full(nbytes + 2 * GUARD + 64, _UNTOUCHED, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + nbytes + 2 * GUARD]


def _at_the_end(nbytes: int) -> Array:
    """Bytes in front of memory that cannot be read: on a line of the cache, as workspaces are whole lines."""
    return between_forbidden_pages(np.full(nbytes, _UNTOUCHED, np.uint8), at_end=True)


def between_forbidden_pages(x: Array, *, at_end: bool) -> Array:
    """A dense copy of x, whose first or last element is next to memory that cannot be read."""
    page = mmap.PAGESIZE
    inside = -(-x.nbytes // page) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    everything = np.frombuffer(memory, np.uint8)
    for forbidden in (0, page + inside):
        address = ctypes.c_void_p(everything.ctypes.data + forbidden)
        assert ctypes.CDLL(None, use_errno=True).mprotect(address, ctypes.c_size_t(page), 0) == 0
    start = page + (inside - x.nbytes if at_end else 0)
    copy = everything[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def bits(x: Array) -> bytes:
    """Those of numbers; all NaN are alike."""
    return np.where(np.isnan(x), np.nan, x).astype(x.dtype).tobytes()
