"""Gather and scatter-add on a GPU. Additions are in the order of the indices, without atomics, so bits are a CPU's.

For few indices in a row, a thread for each element of the result scans all indices of its row. For more, indices are
sorted stably, and a thread for each segment of equal indices adds its updates to the element. Rows that share their
indices, as those of a table do, share one sort, and each has threads of its own.

The sort merges: in runs of 256, each index counts those before it; then it finds its place in the neighbouring run by
bisection, in runs twice as long each time. For n indices that is 1 + log₂(n / 256) launches, and O(n · log² n) reads.
A segment is added up by one thread, so that a row of equal indices takes n additions one after the other. Long rows are
sorted and added in chunks of indices, still in order.

A gather has a thread for each element of the result, which reads one index and one element.

An index outside of the axis adds nothing, reads as zero, and is noted at the flag of the node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.indexing import Adding
from engine.compiler.recipes import adding_of
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    LaunchPhase,
    Move,
    Phase,
    are_addressable,
    by_items,
    card_text,
    computed_in,
    is_wide,
    move_entries,
    move_kernels,
    unravelled,
)
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import FLOATS, TensorType

#: indices of a row up to which each element scans all of them
LOOKED_THROUGH: Final = 64
#: indices that are sorted by counting
_RUN: Final = 256
#: bytes of a key: the index in the upper half of a number, its position in the lower half
_KEY: Final = 8
#: chunks that rows may be cut into
_MOST_CHUNKS: Final = 256
#: bound of the extents that half of a key holds
_MOST: Final = 1 << 31
#: entries of the tables before the axes: of adding, and of reading
_HEAD: Final = 20
_READ_HEAD: Final = 8
#: operands of `scatter_add`
_X, _INDEX, _UPDATES = (CardPlace("operand", number) for number in range(3))
#: bytes of an index, and whether it is signed → its C type
INDICES: Final = {
    (1, True): "signed char",
    (1, False): "unsigned char",
    (4, True): "int",
    (4, False): "unsigned",
    (8, True): "long long",
}

_KERNELS: Final = """\
typedef {index} X;
typedef unsigned long long KEY;
KERNEL add_few(GIVEN) {{
const long long* const table = TABLE;
const N inner = table[9], extent = table[7], shared = table[10];
const long long count = table[8];
EACH_ITEM(item, table[6]) {{
const N rest = item / inner, own = rest % extent, row = rest / extent * inner + item % inner;
const N list = row / shared, among = row % shared;
const char* x = (const char*)table[0]; const char* index = (const char*)table[1];
const char* updates = (const char*)table[2]; char* y = (char*)table[3];
{of_list}
{of_row}
F sum = table[13] ? WIDEN(*(const E*)(x + own * table[16])) : (F)0;
int outside = 0;
for (long long k = 0; k < count; k++) {{
const long long at = (long long)*(const X*)(index + k * table[14]);
outside |= at < 0 || at >= (long long)extent;
if (at == (long long)own) sum += WIDEN(*(const E*)(updates + k * table[15]));
}}
*(E*)(y + own * table[17]) = NARROW(sum);
if (outside && own == 0) *(int*)table[4] = (int)table[18];
}}
}}
DEVICE KEY key_at(const char* index, long long step, long long extent, long long k) {{
const long long at = (long long)*(const X*)(index + k * step);
return (KEY)(at < 0 || at >= extent ? extent : at) << 32 | (KEY)k;
}}
KERNEL sort_runs(GIVEN) {{
const long long* const table = TABLE;
const N count = table[8];
EACH_ITEM(item, table[6]) {{
const N list = (N)table[12] + item / count, k = item % count, begin = k - k % {run};
const N end = count - begin < {run} ? count : begin + {run};
const char* index = (const char*)table[1];
{of_index}
const KEY own = key_at(index, table[14], table[7], k);
N rank = begin;
for (N other = begin; other < end; other++) rank += key_at(index, table[14], table[7], other) < own;
((KEY*)table[5])[item - k + rank] = own;
if ((long long)(own >> 32) == table[7]) *(int*)table[4] = (int)table[18];
}}
}}
KERNEL merge_runs(GIVEN) {{
const long long* const table = TABLE;
const N count = table[8], width = table[11];
EACH_ITEM(item, table[6]) {{
const N k = item % count, run = k / width, begin = (run ^ 1) * width;
const KEY* const keys = (const KEY*)table[0] + (item - k);
const KEY own = keys[k];
N low = begin < count ? begin : count, high = count - low < width ? count : low + width;
while (low < high) {{
const N middle = low + (high - low) / 2;
if (keys[middle] < own) low = middle + 1; else high = middle;
}}
const N before = begin < count ? low - begin : 0;
((KEY*)table[5])[item - k + (run & ~(N)1) * width + (k - run * width) + before] = own;
}}
}}
KERNEL add_segments(GIVEN) {{
const long long* const table = TABLE;
const N shared = table[10], count = table[8];
EACH_ITEM(item, table[6]) {{
const N among = item % shared, rest = item / shared, first = rest % count, list = (N)table[12] + rest / count;
const KEY* const keys = (const KEY*)table[5] + (rest - first);
const KEY at = keys[first] >> 32;
if ((long long)at == table[7] || (first && keys[first - 1] >> 32 == at)) continue;
const char* x = 0; const char* index = 0; const char* updates = (const char*)table[2]; char* y = (char*)table[3];
{of_list}
{of_row}
E* const element = (E*)(y + (long long)at * table[17]);
F sum = WIDEN(*element);
for (N k = first; k < count && keys[k] >> 32 == at; k++)
sum += WIDEN(*(const E*)(updates + (long long)(keys[k] & 0xffffffffu) * table[15]));
*element = NARROW(sum);
}}
}}
"""


_KERNEL: Final = """\
typedef {index} X;
KERNEL read_at(GIVEN) {{
const long long* const table = TABLE;
EACH_ITEM(item, table[4]) {{
const char* x = (const char*)table[0]; const char* index = (const char*)table[1];
{places}
const long long at = (long long)*(const X*)index;
const int inside = at >= 0 && at < table[5];
((E*)table[2])[item] = inside ? *(const E*)(x + at * table[6]) : (E)0;
if (!inside) *(int*)table[3] = (int)table[7];
}}
}}
"""


def index_sum_recipe(
    of: Adding, workspace: int, x: CardPlace | None = _X, index: CardPlace = _INDEX, updates: CardPlace = _UPDATES
) -> CardRecipe | None:
    """Make the recipe of x, or zeros, with updates added at the indices, in at most so many bytes of workspace.

    An index outside is noted as the number of its operand, plus 1. None if the workspace is too small, 64 bits are too
    few for offsets, the axis is empty, or float16 would be rounded between two chunks.
    """
    writer = _IndexSum(of, workspace, x, index, updates)
    if not of.extent or not writer.is_addressable or (of.index_bytes, of.is_signed) not in INDICES:
        return None
    return writer.recipe()


def scatter_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **_: Any
) -> CardRecipe | None:
    """Make the recipe of updates added to operand 0 at the indices, operand 1."""
    of = adding_of(out, x, index, updates, axis) if out.is_float else None
    return index_sum_recipe(of, terms.workspace) if of is not None and _is_for(terms, of) else None


def segments_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, segment_ids: TensorType, **_: Any
) -> CardRecipe | None:
    """Make the recipe of rows of operand 0 added up by the numbers of their segments, operand 1."""
    if not out.is_float or x.dtype != out.dtype:
        return None
    of = adding_of_segments(out, x, segment_ids)
    if not _is_for(terms, of):
        return None
    return index_sum_recipe(of, terms.workspace, None, CardPlace("operand", 1), CardPlace("operand", 0))


def _is_for(terms: CardTerms, of: Adding) -> bool:
    """Whether adding in order pays: for many indices, additions in an order of chance are quicker, if allowed."""
    return terms.deterministic or of.count <= LOOKED_THROUGH


def adding_of_segments(out: TensorType, x: TensorType, segment_ids: TensorType) -> Adding:
    """Describe the sum of rows of x by segments: all columns share the numbers of their segments."""
    of = tuple(out.strides[1:]), tuple(x.strides[1:])
    y, updates = ((*steps, type.strides[0]) for steps, type in zip(of, (out, x), strict=True))
    index = (*[0] * (x.ndim - 1), segment_ids.strides[0])
    bits = segment_ids.dtype.itemsize, segment_ids.dtype.kind == "i"
    number = out.dtype.name, out.dtype.itemsize
    return Adding(*number, out.shape[1:], out.shape[0], x.shape[0], y, index, updates, y, *bits)


class _IndexSum:
    """The kernels that add, and their tables."""

    def __init__(self, of: Adding, workspace: int, x: CardPlace | None, index: CardPlace, updates: CardPlace) -> None:
        self.of, self.workspace, self.x, self.index, self.updates = of, workspace, x, index, updates
        steps = (of.index, of.updates, of.x, of.y)
        axes = [(extent, tuple(each[a] if extent > 1 else 0 for each in steps)) for a, extent in enumerate(of.rows)]
        self.lists, self.shared = (
            merged_axes(tuple(n for n, _ in some), [tuple(each[k] for _, each in some) for k in range(4)])
            for some in ([axis for axis in axes if axis[1][0]], [axis for axis in axes if not axis[1][0]])
        )
        self.count, self.rows = math.prod(n for n, _ in self.shared), math.prod(of.rows)
        self.number = math.prod(n for n, _ in self.lists)
        self.copy = Move((*of.rows, of.extent), of.x if x else of.y, of.y).merged()
        self.entries = max(_HEAD + 5 * len(self.lists) + 4 * len(self.shared), move_entries(len(self.copy.extents)))
        self.is_wide = is_wide(self.rows * max(of.extent, of.count), of.extent)

    @property
    def is_addressable(self) -> bool:
        of, places = self.of, (*self.of.rows, max(self.of.extent, self.of.count))
        return of.extent < _MOST and all(
            are_addressable(list(zip(places, steps, strict=True))) for steps in (of.x, of.index, of.updates, of.y)
        )

    def recipe(self) -> CardRecipe | None:
        if not self.rows:
            return CardRecipe(())
        if self.of.count <= LOOKED_THROUGH:
            inner = self.count if self.of.y[-1] > self.of.itemsize else 1
            few = self._launch("add_few", self.rows * self.of.extent, self.of.count, inner=inner)
            return CardRecipe((few,), self._text())
        # lists of indices that are sorted at once, and how many indices of each
        lists, keys = 1, self.workspace // (2 * _KEY)
        count = min(self.of.count, keys, _MOST - 1)
        if count == self.of.count:
            lists = min(self.number, keys // count)
        if not count or (count < self.of.count and computed_in(self.of.dtype) != self.of.dtype):
            return None
        starts = range(0, self.number, lists), range(0, self.of.count, count)
        if len(starts[0]) * len(starts[1]) > _MOST_CHUNKS:
            return None
        # The result before anything is added.
        y = CardPlace("result", 0)
        phases: list[Phase] = [self.copy.phase("move" if self.x else "clear", self.entries, self.x or y, y)]
        for first in starts[0]:
            for begin in starts[1]:
                some = min(lists, self.number - first), min(count, self.of.count - begin)
                phases += self._sorted(first, begin, *some)
        return CardRecipe(tuple(phases), self._text(), 2 * lists * count * _KEY)

    def _sorted(self, first: int, begin: int, lists: int, count: int) -> Iterator[LaunchPhase]:
        """Sort some indices of some lists, from one half of the workspace to the other, and add their updates."""
        halves = CardPlace("workspace"), CardPlace("workspace", 0, lists * count * _KEY)
        items, number = lists * count, 0
        yield self._launch("sort_runs", items, count, keys=halves[0], first=first, begin=begin)
        width = _RUN
        while width < count:
            read, number = halves[number], 1 - number
            yield self._launch("merge_runs", items, count, read, halves[number], width=width)
            width *= 2
        keys = halves[number]
        yield self._launch("add_segments", items * self.count, count, keys=keys, first=first, begin=begin)

    def _launch(
        self,
        kernel: str,
        items: int,
        count: int,
        read: CardPlace | None = None,
        keys: CardPlace | int = 0,
        inner: int = 1,
        width: int = 0,
        first: int = 0,
        begin: int = 0,
    ) -> LaunchPhase:
        """Launch a kernel on so many items, of lists from `first` and of their indices from `begin` on."""
        of, index, updates = self.of, self.index, self.updates
        index = index._replace(offset=index.offset + begin * of.index[-1])
        updates = updates._replace(offset=updates.offset + begin * of.updates[-1])
        places = (read or self.x or CardPlace("result", 0), index, updates, CardPlace("result", 0), CardPlace("flag"))
        sizes = (keys, items, of.extent, count, inner, self.count, width, first, int(self.x is not None))
        steps = (of.index[-1], of.updates[-1], of.x[-1] if self.x else 0, of.y[-1], self.index.number + 1, 0)
        axes = [
            part
            for each, arrays in ((self.lists, range(4)), (self.shared, range(1, 4)))
            for part in (*(n for n, _ in each), *(s[k] for k in arrays for _, s in each))
        ]
        return by_items(kernel, items, self.entries, *places, *sizes, *steps, *axes)

    def _text(self) -> str:
        of = self.of
        lists, shared = len(self.lists), len(self.shared)
        behind = _HEAD + 5 * lists
        arrays = ("index", "updates", "x", "y")
        of_list = {name: _HEAD + (1 + k) * lists for k, name in enumerate(arrays)}
        of_row = {name: behind + (1 + k) * shared for k, name in enumerate(arrays[1:])}
        kernels = _KERNELS.format(
            index=INDICES[of.index_bytes, of.is_signed],
            run=_RUN,
            of_list=unravelled("list", range(_HEAD, _HEAD + lists), of_list),
            of_index=unravelled("list", range(_HEAD, _HEAD + lists), {"index": of_list["index"]}),
            of_row=unravelled("among", range(behind, behind + shared), of_row),
        )
        kernels += move_kernels(len(self.copy.extents), ("move", "clear"))
        return card_text(of.dtype, self.entries, kernels, is_wide=self.is_wide)


def gather_card_recipe(
    _: CardTerms, out: TensorType, x: TensorType, *index: TensorType, axis: int, **_attrs: Any
) -> CardRecipe | None:
    """Make the recipe of elements of operand 0 at the indices along an axis, operand 1; an index outside is noted as 2.

    None for numbers that are no floats, for a list of indices, and if 64 bits are too few for offsets.
    """
    if len(index) != 1 or out.dtype.name not in FLOATS:
        return None
    (of,) = index
    kind = of.dtype.itemsize, of.dtype.kind == "i"
    reach = tuple(x.shape[a] if a == axis else n for a, n in enumerate(out.shape))
    steps = tuple(0 if a == axis else step for a, step in enumerate(x.strides))
    if kind not in INDICES or not all(
        are_addressable(list(zip(extents, type.strides, strict=True)))
        for extents, type in ((reach, x), (out.shape, of), (out.shape, out))
    ):
        return None
    axes = merged_axes(out.shape, [of.strides, steps])
    count = len(axes)
    entries = _READ_HEAD + 3 * count
    places = unravelled(
        "item", range(_READ_HEAD, _READ_HEAD + count), {"index": _READ_HEAD + count, "x": _READ_HEAD + 2 * count}
    )
    kernel = _KERNEL.format(index=INDICES[kind], places=places)
    text = card_text(out.dtype.name, entries, kernel, is_wide=is_wide(out.size))
    if not out.size:
        return CardRecipe(())
    pointers = (CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0), CardPlace("flag"))
    table = (*pointers, out.size, x.shape[axis], x.strides[axis], 2)
    lying = (*(n for n, _ in axes), *(s[k] for k in range(2) for _, s in axes))
    return CardRecipe((by_items("read_at", out.size, entries, *table, *lying),), text)
