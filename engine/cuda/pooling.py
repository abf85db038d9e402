"""Pooling on a GPU: the maximum of each window of a plane, its position, or the mean; and the gradient of maxima.

Taps are combined in the same order as in `engine.ops.conv.pooling`, down each column of a window and then over the
columns, so the results are equal bit for bit. Forward, a thread computes one window. Backward, a thread computes one
element: it adds up the cotangents of the windows whose maximum is this element, in the order of the taps, so no two
threads add to one element. If an element is in few windows, it searches their maxima itself; otherwise another kernel
finds the position of each maximum once, and stores it in the workspace.
"""

from __future__ import annotations

import math
from typing import Final

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.product import MatrixLayout
from engine.codegen.microkernels.windows import DirectedPool, PoolGeometry
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    LaunchPhase,
    are_addressable,
    card_text,
    is_wide,
    launch_items,
    unravel,
)
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import FLOAT16

#: entries of a table before the batch axes
_HEAD: Final = 21
#: maximum number of chunks that the planes are divided into in the backward pass
_MAX_CHUNKS: Final = 256
#: maximum elements of all its windows that a thread searches for their maxima, as for windows of 3 × 3 with stride 2
_MAX_SEARCHED: Final = 36
#: kernel of each direction that is a single launch
_KERNEL_OF: Final = {"max": "maxima", "avg": "means", "max_indices": "first_maxima"}

#: prologue for a window: its plane, and which of its taps are inside the plane
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
#: backward kernel for an element: sums the cotangents of the windows whose maximum it is
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
#: search for the first of the largest elements of a window; NaN counts as the largest
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
    """Build the recipe of a pool of operand 0. For the gradient of maxima, cotangents are operand 0 and x operand 1.

    Return None if 64 bits are too few for offsets, or if the workspace is too small.
    """
    writer = _Pool(pool.geometry, pool.gradient_layout)
    if not writer.is_addressable:
        return None
    if pool.direction == "max_back":
        return writer.back(terms.workspace)
    items = math.prod(pool.geometry.batch) * math.prod(pool.geometry.positions)
    launch = writer.launch(_KERNEL_OF[pool.direction], items, CardPlace("operand", 0), CardPlace("result", 0))
    return CardRecipe((launch,) if items else (), writer.text)


class _Pool:
    """Kernels of a pool, and their tables."""

    def __init__(self, geometry: PoolGeometry, cotangents: MatrixLayout | None) -> None:
        self.geometry = geometry
        self.cotangents = cotangents or MatrixLayout(0, 0, (0,) * len(geometry.batch))
        axes = merged_axes(geometry.batch, [geometry.planes.batch, self.cotangents.batch])
        self.axes = [extent for extent, _ in axes]
        self.steps = [steps[0] for _, steps in axes], [steps[1] for _, steps in axes]
        self.planes = math.prod(geometry.batch)
        self.is_wide = is_wide(
            self.planes * max(math.prod(geometry.extents), math.prod(geometry.positions)),
            *self._reaches,
            math.prod(geometry.size),
        )

    @property
    def is_addressable(self) -> bool:
        axes = [
            *zip(self.geometry.batch, self.geometry.planes.batch, strict=True),
            *zip(self._reaches, self.geometry.planes[:2], strict=True),
        ]
        cotangent_axes = [
            *zip(self.geometry.batch, self.cotangents.batch, strict=True),
            *zip(self.geometry.positions, self.cotangents[:2], strict=True),
        ]
        return are_addressable(axes) and are_addressable(cotangent_axes)

    @property
    def _reaches(self) -> list[int]:
        """Upper bounds of how far windows extend from the first element of a plane."""
        geometry = self.geometry
        axes = zip(geometry.positions, geometry.stride, geometry.size, geometry.padding, geometry.extents, strict=True)
        return [n * stride + size + padding + extent for n, stride, size, padding, extent in axes]

    @property
    def text(self) -> str:
        window = _WINDOW.format(places=self._unravel_plane(planes=0))
        # Of equal values, such as 0.0 and -0.0, NumPy's maximum returns the second, but the first in float16.
        maximum = (
            "seen > {0} || seen != seen ? seen : {0}" if self.geometry.dtype == FLOAT16.name else "MAXIMUM({0}, seen)"
        )
        maxima_of = maximum.format("taps"), maximum.replace("seen", "taps").format("found")
        maxima = _SLIDE.format(start="-INFINITE", taps=maxima_of[0], found=maxima_of[1])
        means = _SLIDE.format(start="(F)-0.0", taps="taps + seen", found="found + taps")
        searches = {
            f"search_for_{purpose}": _SEARCH.format(name=name, window=window, search=_FIRST_LARGEST, type=type)
            for purpose, name, type in (("numbers", "first_maxima", "long long"), ("places", "choose", "S"))
        }
        chosen = "const S* const chosen = (const S*)table[1] + among * (long long)(down * across);"
        by_places = self._unravel_plane(given=1) + "\n" + chosen
        at_once = "const char* planes = (const char*)table[1];\n" + self._unravel_plane(given=1, planes=0)
        kernels = _KERNELS.format(
            window=window,
            maxima=maxima,
            means=means,
            search=_FIRST_LARGEST,
            back_by_places=_BACK.format(name="give_back", places=by_places, chosen="chosen[i * across + j]"),
            back_at_once=_BACK.format(name="choose_back", places=at_once, chosen="choice(planes, i, j, table)"),
            **searches,
        )
        return card_text(self.geometry.dtype, self._entries, kernels, is_wide=self.is_wide)

    @property
    def _entries(self) -> int:
        return _HEAD + 3 * len(self.axes)

    def _unravel_plane(self, **numbers: int) -> str:
        """Move pointers to a plane: number 0 stands for the strides of x, 1 for those of the cotangents."""
        steps = {pointer: _HEAD + (1 + number) * len(self.axes) for pointer, number in numbers.items()}
        return unravel("plane", range(_HEAD, _HEAD + len(self.axes)), steps)

    def launch(
        self, kernel: str, items: int, read: CardPlace, second: CardPlace, third: CardPlace | int = 0, first: int = 0
    ) -> LaunchPhase:
        geometry = self.geometry
        taps, is_zero_added = math.prod(geometry.size), int(not (geometry.is_whole(0) and geometry.is_whole(1)))
        sizes = (
            *geometry.extents,
            *geometry.positions,
            *geometry.size,
            *geometry.stride,
            *geometry.padding,
            *geometry.planes[:2],
            *self.cotangents[:2],
        )
        head = (read, second, third, items, first, taps, is_zero_added)
        return launch_items(kernel, items, self._entries, *head, *sizes, *self.axes, *self.steps[0], *self.steps[1])

    def back(self, workspace: int) -> CardRecipe | None:
        size = 8 if self.is_wide else 4
        positions, elements = math.prod(self.geometry.positions), math.prod(self.geometry.extents)
        g, x, y, chosen = (*(CardPlace("operand", n) for n in range(2)), CardPlace("result"), CardPlace("workspace"))
        # Number of windows that an element may be in, along each axis.
        windows = (-(-size // stride) for size, stride in zip(self.geometry.size, self.geometry.stride, strict=True))
        if math.prod(windows) * math.prod(self.geometry.size) <= _MAX_SEARCHED:
            items = self.planes * elements
            return CardRecipe((self.launch("choose_back", items, g, x, y),) if items else (), self.text)
        at_once = min(self.planes, workspace // (positions * size))
        if self.planes and (not at_once or -(-self.planes // at_once) > _MAX_CHUNKS):
            return None
        phases = []
        for first in range(0, self.planes, max(1, at_once)):
            planes = min(at_once, self.planes - first)
            phases.append(self.launch("choose", planes * positions, x, chosen, first=first))
            phases.append(self.launch("give_back", planes * elements, g, chosen, y, first))
        return CardRecipe(tuple(phases), self.text, at_once * positions * size)
