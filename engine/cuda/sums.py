"""Sums on a GPU over any axes of a tensor, in an order fixed by shape and layout, without atomics.

If the reduced axes are contiguous in memory, a warp computes one element of the result, or a part of it: each thread
adds every 32nd element, then the lanes are combined pairwise. If elements of the result are contiguous, a thread
computes one by itself, and neighbouring threads read neighbouring elements. In both cases a thread adds up 64 elements
at a time, and then those sums. If the result has few elements, each is divided into parts for more threads, and a
second launch adds up the parts. float16 is summed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    LaunchPhase,
    are_addressable,
    card_text,
    compute_dtype,
    is_wide,
    launch_items,
    unravel,
)
from engine.cuda.cuda_text import WARP
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import TensorType

#: threads that keep a GPU busy, maximum parts of an element of the result, and minimum addends of a thread
_BUSY: Final = 1 << 16
_MAX_PARTS: Final = 1 << 11
_MIN_ADDENDS: Final = 32
#: addends that a thread sums separately before it adds them to its total, to limit the rounding error
_RUN: Final = 64
#: entries of a kernel's table before the axes
_HEAD: Final = 8

_KERNEL: Final = """\
KERNEL {name}(GIVEN) {{
const long long* const table = TABLE;
const N parts = table[4], lane = {lane};
const long long part = table[3], length = table[5];
{each}
const N number = {number}, among = {among};
const long long begin = among * part, end = length - begin < part ? length : begin + part;
const char* x = (const char*)table[0];
{of_number}
F sum = 0;
for (long long start = begin; start < end; start += {at_once} * {lanes}) {{
const long long most = end - start < {at_once} * {lanes} ? end : start + {at_once} * {lanes};
F some = 0;
#pragma unroll 8
for (long long at = start + lane; at < most; at += {lanes}) {{
const char* element = x;
{of_element}
some += {read};
}}
sum += some;
}}
{met}{write};
}}
}}
"""
#: a warp does the work of one team; all of its threads run the whole loop, since the shuffles need every lane
_WARPS: Final = {
    "lane": "THREAD_X % 32",
    "each": """\
const N warps = GRID_X * (N)WIDE / 32, teams = table[2];
for (N team = (BLOCK_X * (N)WIDE + THREAD_X) / 32; team < teams; team += warps) {""",
    "number": "team / parts",
    "among": "team % parts",
    "lanes": WARP,
    "met": """\
#pragma unroll
for (int h = 16; h; h /= 2) { const F above = FROM_ABOVE(sum, h, 32); sum += above; }
if (lane == 0) """,
}
_THREADS: Final = {
    "lane": "0",
    "each": "EACH_ITEM(team, table[2]) {",
    "number": "team % (N)table[7]",
    "among": "team / (N)table[7]",
    "lanes": 1,
    "met": "",
}
_RESULT: Final = "((E*)table[1])[number] = NARROW(table[6] == 1 ? sum : sum / (F)table[6])"
_PART: Final = "((F*)table[1])[number * (long long)parts + among] = sum"

#: extents, and strides in bytes, of axes
_Axes = list[tuple[int, tuple[int, ...]]]


class SummedAxes(NamedTuple):
    """Sum over some axes: extents, and strides in bytes, of the axes of the result and of the reduced axes."""

    dtype: str
    itemsize: int
    outer: tuple[int, ...]
    outer_steps: tuple[int, ...]
    reduced: tuple[int, ...]
    reduced_steps: tuple[int, ...]

    @classmethod
    def over(
        cls, dtype: str, itemsize: int, shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]
    ) -> SummedAxes:
        """Return the description of the sum over `axes` of a tensor with these strides."""
        sides = [[a for a in range(len(shape)) if (a in axes) == is_reduced] for is_reduced in (False, True)]
        return cls(dtype, itemsize, *(tuple(x[a] for a in side) for side in sides for x in (shape, strides)))


def axis_sum_recipe(summed: SummedAxes, workspace: int, divisor: int = 1) -> CardRecipe | None:
    """Build the recipe that sums operand 0 and divides by `divisor`, in at most `workspace` bytes.

    Return None if the workspace is too small, or if 64 bits are too few for offsets.
    """
    axes = [
        *zip(summed.outer, summed.outer_steps, strict=True),
        *zip(summed.reduced, summed.reduced_steps, strict=True),
    ]
    if not are_addressable(axes):
        return None
    recipe = _Sum(summed, divisor).recipe()
    return recipe if recipe.workspace <= workspace else None


def sum_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, *, axes: tuple[int, ...], **_: Any
) -> CardRecipe | None:
    """Build the recipe of a sum of floats."""
    return _recipe(terms, out, x, axes, 1)


def mean_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, *, axes: tuple[int, ...], **_: Any
) -> CardRecipe | None:
    """Build the recipe of a mean of floats; None for a mean of no elements."""
    count = math.prod(x.shape[axis] for axis in axes)
    return _recipe(terms, out, x, axes, count) if count else None


def _recipe(terms: CardTerms, out: TensorType, x: TensorType, axes: Sequence[int], divisor: int) -> CardRecipe | None:
    if not x.is_float or x.dtype != out.dtype:
        return None
    summed = SummedAxes.over(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return axis_sum_recipe(summed, terms.workspace, divisor)


class _Sum:
    """Kernels of a sum, and their tables."""

    def __init__(self, summed: SummedAxes, divisor: int) -> None:
        self.summed, self.divisor = summed, divisor
        self.size = np.dtype(compute_dtype(summed.dtype)).itemsize
        self.outer, self.reduced = (
            merged_axes(summed.outer, [summed.outer_steps]),
            merged_axes(summed.reduced, [summed.reduced_steps]),
        )
        self.outputs, self.length = math.prod(summed.outer), math.prod(summed.reduced)
        self.entries = _HEAD + 2 * (len(self.outer) + len(self.reduced))
        self.kernels: list[str] = []

    def recipe(self) -> CardRecipe:
        if not self.outputs:
            return CardRecipe(())
        x, y = CardPlace("operand", 0), CardPlace("result", 0)
        # Use warps if the reduced axes have the smallest stride, so that reads coalesce, and if they fill a warp.
        outer_stride, reduced_stride = (
            min((abs(s[0]) for n, s in axes if n > 1), default=1 << 62) for axes in (self.outer, self.reduced)
        )
        by_warps = reduced_stride <= outer_stride and self.length >= WARP
        lanes = WARP if by_warps else 1
        # Divide each element of the result into as many parts as keep a GPU busy, but leave each thread enough addends.
        busy, max_parts = -(-_BUSY // (self.outputs * lanes)), -(-self.length // (_MIN_ADDENDS * lanes))
        parts = max(1, min(busy, max_parts, _MAX_PARTS))
        parts = 1 if parts <= 2 else -(-self.length // -(-self.length // parts))
        if parts == 1:
            phases = [self._launch("add_up", self.outer, self.reduced, x, y, 1, by_warps=by_warps)]
        else:
            sums, n = CardPlace("workspace"), self.size
            dense: tuple[_Axes, _Axes] = [(self.outputs, (parts * n,))], [(parts, (n,))]
            phases = [
                self._launch("add_parts", self.outer, self.reduced, x, sums, parts, by_warps=by_warps),
                self._launch("add_sums", *dense, sums, y, 1, by_warps=True),
            ]
        counts_are_wide = is_wide(self.outputs * max(WARP, self.length), self.outputs * parts * WARP)
        text = card_text(self.summed.dtype, self.entries, "".join(self.kernels), is_wide=counts_are_wide)
        return CardRecipe(tuple(phases), text, 0 if parts == 1 else self.outputs * parts * self.size)

    def _launch(
        self, name: str, outer: _Axes, reduced: _Axes, read: CardPlace, target: CardPlace, parts: int, *, by_warps: bool
    ) -> LaunchPhase:
        length = math.prod(n for n, _ in reduced)
        teams, part = self.outputs * parts, -(-length // parts)
        axes = [part for group in (outer, reduced) for part in (*(n for n, _ in group), *(s[0] for _, s in group))]
        self.kernels.append(self._kernel(name, len(outer), len(reduced), is_last=parts == 1, by_warps=by_warps))
        head = (read, target, teams, part, parts, length, self.divisor, self.outputs)
        return launch_items(name, teams * (WARP if by_warps else 1), self.entries, *head, *axes)

    def _kernel(self, name: str, outer: int, reduced: int, *, is_last: bool, by_warps: bool) -> str:
        reduced_start = _HEAD + 2 * outer
        return _KERNEL.format(
            name=name,
            of_number=unravel("number", range(_HEAD, _HEAD + outer), {"x": _HEAD + outer}),
            of_element=unravel(
                "at", range(reduced_start, reduced_start + reduced), {"element": reduced_start + reduced}
            ),
            read="*(const F*)element" if name == "add_sums" else "WIDEN(*(const E*)element)",
            write=_RESULT if is_last else _PART,
            at_once=_RUN,
            **(_WARPS if by_warps else _THREADS),
        )
