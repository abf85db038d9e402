"""Pooling on a GPU: the maximum of each window of a plane, its position, or the mean; and the gradient of maxima.

Taps are combined as in `engine.ops.conv.pooling`, down each column of a window, then over the columns, and so bits are
the same. A thread computes a window; on the way back, an element: it adds up the cotangents of the windows that have
chosen it, in the order of the taps, so that no element is added to by two threads. If an element has few windows, it
finds their choices itself; else another kernel finds each choice once, and keeps it in the workspace.
"""

from __future__ import annotations

import math
from typing import Final

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.product import Matrices
from engine.codegen.microkernels.windows import DirectedPool, PoolGeometry
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    LaunchPhase,
    are_addressable,
    by_items,
    card_text,
    is_wide,
    unravelled,
)
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import FLOAT16

#: entries of a table before the batch axes
_HEAD: Final = 21
#: chunks that planes may be cut into, on the way back
_MOST_CHUNKS: Final = 256
#: elements of all its windows that an element scans for their choices: as in windows of 3 × 3, two apart
_LOOKED_AT: Final = 36
#: the kernel of each direction that is one launch
_KERNEL_OF: Final = {"max": "maxima", "avg": "means", "max_indices": "first_maxima"}

#: a window: its plane, and which of its taps are inside of that
_WINDOW: Final = """\
const long long* const table = TABLE;
const S height = table[7], width = table[8], size0 = table[11], size1 = table[12];
EACH_ITEM(item, table[3]) {{
const S across = table[10], positions = (S)table[9] * across, here = (S)(item % (N)positions);
const N plane = (N)table[4] + item / (N)positions;
const S top = here / across * (S)table[13] - (S)table[15], left = here % across * (S)table[14] - (S)table[16];
const S first0 = top < 0 ? -top : 0, first1 = left < 0 ? -left : 0;
const S past0 = height - top < size0 ? height - top : size0, past1 = width - left < size1 ? width - left : size1;
const char* planes = (const char*)table[0];
{places}
const char* const x = planes + (top * table[17] + left * table[18]);
#define SEEN(row, column) WIDEN(*(const E*)(x + ((row) * table[17] + (column) * table[18])))
"""
_SLIDE: Final = """\
F found = {start};
for (S column = first1; column < past1; column++) {{
F taps = {start};
for (S row = first0; row < past0; row++) {{ const F seen = SEEN(row, column); taps = {taps}; }}
found = {found};
}}
"""
_KERNELS: Final = """\
KERNEL maxima(GIVEN) {{
{window}{maxima}((E*)table[1])[item] = NARROW(found);
}}
}}
KERNEL means(GIVEN) {{
{window}{means}if (table[6]) found += (F)0;
((E*)table[1])[item] = NARROW(found / (F)table[5]);
}}
}}
{search_for_numbers}{search_for_places}
DEVICE S choice(const char* const planes, S i, S j, const long long* const table) {{
const S height = table[7], width = table[8], size0 = table[11], size1 = table[12];
const S top = i * (S)table[13] - (S)table[15], left = j * (S)table[14] - (S)table[16];
const S first0 = top < 0 ? -top : 0, first1 = left < 0 ? -left : 0;
const S past0 = height - top < size0 ? height - top : size0, past1 = width - left < size1 ? width - left : size1;
const char* const x = planes + (top * table[17] + left * table[18]);
{search}return top * width + left + chosen;
}}
{back_by_places}{back_at_once}"""
#: an element: the windows that have chosen it
_BACK: Final = """\
KERNEL {name}(GIVEN) {{
const long long* const table = TABLE;
const S height = table[7], width = table[8], down = table[9], across = table[10];
const S size0 = table[11], size1 = table[12], stride0 = table[13], stride1 = table[14];
EACH_ITEM(item, table[3]) {{
const S elements = height * width, own = (S)(item % (N)elements);
const N among = item / (N)elements, plane = (N)table[4] + among;
const char* given = (const char*)table[0];
{places}
const S row = own / width + (S)table[15], column = own % width + (S)table[16];
F total = 0;
S j = column / stride1;
for (S tap1 = column % stride1; tap1 < size1 && j >= 0; tap1 += stride1, j--) {{
if (j >= across) continue;
F sum = 0;
S i = row / stride0;
for (S tap0 = row % stride0; tap0 < size0 && i >= 0; tap0 += stride0, i--)
if (i < down && {chosen} == own) sum += WIDEN(*(const E*)(given + (i * table[19] + j * table[20])));
total += sum;
}}
((E*)table[2])[plane * (long long)elements + own] = NARROW(total);
}}
}}
"""
#: the first of the largest elements of a window; a NaN is the largest
_FIRST_LARGEST: Final = """\
S chosen = first0 * width + first1;
F largest = -INFINITE;
for (S row = first0; row < past0; row++) for (S column = first1; column < past1; column++) {
const F seen = SEEN(row, column);
if (!(seen <= largest) && largest == largest) { largest = seen; chosen = row * width + column; }
}
"""
_SEARCH: Final = """\
KERNEL {name}(GIVEN) {{
{window}{search}(({type}*)table[1])[item] = top * width + left + chosen;
}}
}}
"""


def pool_card_recipe(terms: CardTerms, pool: DirectedPool) -> CardRecipe | None:
    """Make the recipe of a pool of operand 0; the gradient of maxima has cotangents, operand 0, and x, operand 1.

    None if 64 bits are too few for offsets, or the workspace is too small.
    """
    writer = _Pool(pool.of, pool.given)
    if not writer.is_addressable:
        return None
    if pool.direction == "max_back":
        return writer.back(terms.workspace)
    items = math.prod(pool.of.batch) * math.prod(pool.of.positions)
    launch = writer.launch(_KERNEL_OF[pool.direction], items, CardPlace("operand", 0), CardPlace("result", 0))
    return CardRecipe((launch,) if items else (), writer.text)


class _Pool:
    """The kernels of a pool, and their tables."""

    def __init__(self, of: PoolGeometry, given: Matrices | None) -> None:
        self.of = of
        self.given = given or Matrices(0, 0, (0,) * len(of.batch))
        axes = merged_axes(of.batch, [of.planes.batch, self.given.batch])
        self.axes = [extent for extent, _ in axes]
        self.steps = [steps[0] for _, steps in axes], [steps[1] for _, steps in axes]
        self.planes = math.prod(of.batch)
        self.is_wide = is_wide(
            self.planes * max(math.prod(of.extents), math.prod(of.positions)), *self._reaches, math.prod(of.size)
        )

    @property
    def is_addressable(self) -> bool:
        axes = [
            *zip(self.of.batch, self.of.planes.batch, strict=True),
            *zip(self._reaches, self.of.planes[:2], strict=True),
        ]
        given = [
            *zip(self.of.batch, self.given.batch, strict=True),
            *zip(self.of.positions, self.given[:2], strict=True),
        ]
        return are_addressable(axes) and are_addressable(given)

    @property
    def _reaches(self) -> list[int]:
        """Bounds of how far windows go from the first element of a plane."""
        of = self.of
        axes = zip(of.positions, of.stride, of.size, of.padding, of.extents, strict=True)
        return [n * stride + size + padding + extent for n, stride, size, padding, extent in axes]

    @property
    def text(self) -> str:
        window = _WINDOW.format(places=self._unravelled(planes=0))
        # Of equal ones, as zeros are, NumPy has the second, and the first in float16.
        larger = "seen > {0} || seen != seen ? seen : {0}" if self.of.dtype == FLOAT16.name else "MAXIMUM({0}, seen)"
        first = larger.format("taps"), larger.replace("seen", "taps").format("found")
        maxima = _SLIDE.format(start="-INFINITE", taps=first[0], found=first[1])
        means = _SLIDE.format(start="(F)-0.0", taps="taps + seen", found="found + taps")
        searches = {
            f"search_for_{what}": _SEARCH.format(name=name, window=window, search=_FIRST_LARGEST, type=type)
            for what, name, type in (("numbers", "first_maxima", "long long"), ("places", "choose", "S"))
        }
        chosen = "const S* const chosen = (const S*)table[1] + among * (long long)(down * across);"
        by_places = self._unravelled(given=1) + "\n" + chosen
        at_once = "const char* planes = (const char*)table[1];\n" + self._unravelled(given=1, planes=0)
        kernels = _KERNELS.format(
            window=window,
            maxima=maxima,
            means=means,
            search=_FIRST_LARGEST,
            back_by_places=_BACK.format(name="give_back", places=by_places, chosen="chosen[i * across + j]"),
            back_at_once=_BACK.format(name="choose_back", places=at_once, chosen="choice(planes, i, j, table)"),
            **searches,
        )
        return card_text(self.of.dtype, self._entries, kernels, is_wide=self.is_wide)

    @property
    def _entries(self) -> int:
        return _HEAD + 3 * len(self.axes)

    def _unravelled(self, **numbers: int) -> str:
        """Move pointers to a plane: with number 0, by the strides of x, with 1, by those of the cotangents."""
        steps = {pointer: _HEAD + (1 + number) * len(self.axes) for pointer, number in numbers.items()}
        return unravelled("plane", range(_HEAD, _HEAD + len(self.axes)), steps)

    def launch(
        self, kernel: str, items: int, read: CardPlace, second: CardPlace, third: CardPlace | int = 0, first: int = 0
    ) -> LaunchPhase:
        of = self.of
        taps, is_zero_added = math.prod(of.size), int(not (of.is_whole(0) and of.is_whole(1)))
        sizes = (*of.extents, *of.positions, *of.size, *of.stride, *of.padding, *of.planes[:2], *self.given[:2])
        head = (read, second, third, items, first, taps, is_zero_added)
        return by_items(kernel, items, self._entries, *head, *sizes, *self.axes, *self.steps[0], *self.steps[1])

    def back(self, workspace: int) -> CardRecipe | None:
        size = 8 if self.is_wide else 4
        positions, elements = math.prod(self.of.positions), math.prod(self.of.extents)
        g, x, y, chosen = (*(CardPlace("operand", n) for n in range(2)), CardPlace("result"), CardPlace("workspace"))
        # The windows that an element may be in, along each axis.
        windows = (-(-size // stride) for size, stride in zip(self.of.size, self.of.stride, strict=True))
        if math.prod(windows) * math.prod(self.of.size) <= _LOOKED_AT:
            items = self.planes * elements
            return CardRecipe((self.launch("choose_back", items, g, x, y),) if items else (), self.text)
        at_once = min(self.planes, workspace // (positions * size))
        if self.planes and (not at_once or -(-self.planes // at_once) > _MOST_CHUNKS):
            return None
        phases = []
        for first in range(0, self.planes, max(1, at_once)):
            some = min(at_once, self.planes - first)
            phases.append(self.launch("choose", some * positions, x, chosen, first=first))
            phases.append(self.launch("give_back", some * elements, g, chosen, y, first))
        return CardRecipe(tuple(phases), self.text, at_once * positions * size)
