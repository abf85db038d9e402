"""Sums on a GPU over any axes of a tensor, in an order that shape and layout fix, without atomics.

If neighbours in memory are added up, a warp computes a number of the result, or a part of it: each thread adds every
32nd element, then they meet by halves. If neighbours belong to neighbouring numbers, a thread computes a number by
itself, and neighbouring threads read neighbouring elements. Either adds up 64 elements at a time, and then those sums.
If the result has few numbers, each is cut into parts for more threads, and a second launch adds up the parts. float16
is added up in float32, and rounded once.
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
    by_items,
    card_text,
    computed_in,
    is_wide,
    unravelled,
)
from engine.cuda.cuda_text import WARP
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import TensorType

#: threads that keep a GPU busy, most parts of a number, and least elements of a thread
_BUSY: Final = 1 << 16
_MOST_PARTS: Final = 1 << 11
_LEAST: Final = 32
#: elements that a thread adds up before it adds that to its sum
_AT_ONCE: Final = 64
#: entries of a table before the axes
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
#: a warp has a team's work, and all of its threads run all of it, since they meet
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

#: extents, and strides in bytes
_Axes = list[tuple[int, tuple[int, ...]]]


class SummedAxes(NamedTuple):
    """A sum over some axes: extents, and strides in bytes, of axes that are kept, and of axes that are added up."""

    dtype: str
    itemsize: int
    kept: tuple[int, ...]
    kept_steps: tuple[int, ...]
    added: tuple[int, ...]
    added_steps: tuple[int, ...]

    @classmethod
    def over(
        cls, dtype: str, itemsize: int, shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]
    ) -> SummedAxes:
        """Describe the sum over `axes` of a tensor with these strides."""
        sides = [[a for a in range(len(shape)) if (a in axes) == is_added] for is_added in (False, True)]
        return cls(dtype, itemsize, *(tuple(x[a] for a in side) for side in sides for x in (shape, strides)))


def axis_sum_recipe(of: SummedAxes, workspace: int, divisor: int = 1) -> CardRecipe | None:
    """Make the recipe of operand 0 added up, and divided by a number, in at most so many bytes of workspace.

    None if the workspace is too small, or 64 bits are too few for offsets.
    """
    axes = [*zip(of.kept, of.kept_steps, strict=True), *zip(of.added, of.added_steps, strict=True)]
    if not are_addressable(axes):
        return None
    recipe = _Sum(of, divisor).recipe()
    return recipe if recipe.workspace <= workspace else None


def sum_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, *, axes: tuple[int, ...], **_: Any
) -> CardRecipe | None:
    """Make the recipe of a sum of floats."""
    return _recipe(terms, out, x, axes, 1)


def mean_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, *, axes: tuple[int, ...], **_: Any
) -> CardRecipe | None:
    """Make the recipe of a mean of floats; None of no numbers."""
    count = math.prod(x.shape[axis] for axis in axes)
    return _recipe(terms, out, x, axes, count) if count else None


def _recipe(terms: CardTerms, out: TensorType, x: TensorType, axes: Sequence[int], divisor: int) -> CardRecipe | None:
    if not x.is_float or x.dtype != out.dtype:
        return None
    of = SummedAxes.over(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return axis_sum_recipe(of, terms.workspace, divisor)


class _Sum:
    """Kernels that add up, and their tables."""

    def __init__(self, of: SummedAxes, divisor: int) -> None:
        self.of, self.divisor = of, divisor
        self.size = np.dtype(computed_in(of.dtype)).itemsize
        self.kept, self.added = merged_axes(of.kept, [of.kept_steps]), merged_axes(of.added, [of.added_steps])
        self.numbers, self.length = math.prod(of.kept), math.prod(of.added)
        self.entries = _HEAD + 2 * (len(self.kept) + len(self.added))
        self.kernels: list[str] = []

    def recipe(self) -> CardRecipe:
        if not self.numbers:
            return CardRecipe(())
        x, y = CardPlace("operand", 0), CardPlace("result", 0)
        # By warps, if neighbours in memory are added up, and there are at least as many as threads of a warp.
        kept, added = (min((abs(s[0]) for n, s in axes if n > 1), default=1 << 62) for axes in (self.kept, self.added))
        by_warps = added <= kept and self.length >= WARP
        lanes = WARP if by_warps else 1
        # as many parts of each number as keep a GPU busy
        busy, most = -(-_BUSY // (self.numbers * lanes)), -(-self.length // (_LEAST * lanes))
        parts = max(1, min(busy, most, _MOST_PARTS))
        parts = 1 if parts <= 2 else -(-self.length // -(-self.length // parts))
        if parts == 1:
            phases = [self._launch("add_up", self.kept, self.added, x, y, 1, by_warps=by_warps)]
        else:
            sums, n = CardPlace("workspace"), self.size
            dense: tuple[_Axes, _Axes] = [(self.numbers, (parts * n,))], [(parts, (n,))]
            phases = [
                self._launch("add_parts", self.kept, self.added, x, sums, parts, by_warps=by_warps),
                self._launch("add_sums", *dense, sums, y, 1, by_warps=True),
            ]
        wide = is_wide(self.numbers * max(WARP, self.length), self.numbers * parts * WARP)
        text = card_text(self.of.dtype, self.entries, "".join(self.kernels), is_wide=wide)
        return CardRecipe(tuple(phases), text, 0 if parts == 1 else self.numbers * parts * self.size)

    def _launch(
        self, name: str, kept: _Axes, added: _Axes, read: CardPlace, to: CardPlace, parts: int, *, by_warps: bool
    ) -> LaunchPhase:
        length = math.prod(n for n, _ in added)
        teams, part = self.numbers * parts, -(-length // parts)
        axes = [part for some in (kept, added) for part in (*(n for n, _ in some), *(s[0] for _, s in some))]
        self.kernels.append(self._kernel(name, len(kept), len(added), is_last=parts == 1, by_warps=by_warps))
        head = (read, to, teams, part, parts, length, self.divisor, self.numbers)
        return by_items(name, teams * (WARP if by_warps else 1), self.entries, *head, *axes)

    def _kernel(self, name: str, kept: int, added: int, *, is_last: bool, by_warps: bool) -> str:
        behind = _HEAD + 2 * kept
        return _KERNEL.format(
            name=name,
            of_number=unravelled("number", range(_HEAD, _HEAD + kept), {"x": _HEAD + kept}),
            of_element=unravelled("at", range(behind, behind + added), {"element": behind + added}),
            read="*(const F*)element" if name == "add_sums" else "WIDEN(*(const E*)element)",
            write=_RESULT if is_last else _PART,
            at_once=_AT_ONCE,
            **(_WARPS if by_warps else _THREADS),
        )
