"""Gather and scatter-add on a GPU, without atomics: updates are added in the order of the indices, as on a CPU.

If a row has few indices, a thread per element of the result scans all of them. Otherwise the indices are sorted with a
stable sort, and a thread per segment of equal indices adds its updates to the element. Rows that share their indices,
such as those of a table, share one sort, and each has its own threads.

The sort is a merge sort: in runs of 256, the rank of each index is counted; then each index finds its position in the
neighbouring run by bisection, in runs that double in length. For n indices it takes 1 + log₂(n / 256) launches and
O(n · log² n) reads. One thread adds up a segment, so n equal indices take n sequential additions. Long rows are sorted
and added in chunks of indices, still in order.

A gather has a thread per element of the result, which reads one index and one element.

An index outside its axis adds nothing, reads as zero, and is noted in the node's flag.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.indexing import ScatterAddGeometry
from engine.compiler.recipes import addition_geometry
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    LaunchPhase,
    Move,
    Phase,
    are_addressable,
    card_text,
    compute_dtype,
    is_wide,
    launch_items,
    move_entries,
    move_kernels,
    unravel,
)
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import FLOATS, TensorType

#: maximum number of indices of a row for which each element scans all of them
MAX_SCANNED_INDICES: Final = 64
#: length of a run, which is sorted by counting ranks
_RUN: Final = 256
#: bytes of a sort key: the index in the upper half, its position in the lower half
_KEY: Final = 8
#: maximum number of chunks that the rows are divided into
_MAX_CHUNKS: Final = 256
#: bound of the extents, so that each fits half a key
_MAX_EXTENT: Final = 1 << 31
#: entries of the tables before the axes, for adding and for reading
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
    adding: ScatterAddGeometry,
    workspace: int,
    x: CardPlace | None = _X,
    index: CardPlace = _INDEX,
    updates: CardPlace = _UPDATES,
) -> CardRecipe | None:
    """Build the recipe that adds updates at the indices to x, or to zeros, in at most `workspace` bytes.

    An index outside is noted as the number of its operand plus 1. Return None if the workspace is too small, if 64 bits
    are too few for offsets, if the axis is empty, or if float16 would be rounded between two chunks.
    """
    writer = _IndexSum(adding, workspace, x, index, updates)
    if not adding.extent or not writer.is_addressable or (adding.index_bytes, adding.is_signed) not in INDICES:
        return None
    return writer.recipe()


def scatter_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **_: Any
) -> CardRecipe | None:
    """Build the recipe that adds updates to operand 0 at the indices, operand 1."""
    adding = addition_geometry(out, x, index, updates, axis) if out.is_float else None
    return index_sum_recipe(adding, terms.workspace) if adding is not None and _prefers_order(terms, adding) else None


def segments_card_recipe(
    terms: CardTerms, out: TensorType, x: TensorType, segment_ids: TensorType, **_: Any
) -> CardRecipe | None:
    """Build the recipe of a segment sum: rows of operand 0, by the segment numbers in operand 1."""
    if not out.is_float or x.dtype != out.dtype:
        return None
    adding = adding_of_segments(out, x, segment_ids)
    if not _prefers_order(terms, adding):
        return None
    return index_sum_recipe(adding, terms.workspace, None, CardPlace("operand", 1), CardPlace("operand", 0))


def _prefers_order(terms: CardTerms, adding: ScatterAddGeometry) -> bool:
    """Return whether an ordered sum pays off: for many indices, unordered atomic additions are faster, if allowed."""
    return terms.deterministic or adding.count <= MAX_SCANNED_INDICES


def adding_of_segments(out: TensorType, x: TensorType, segment_ids: TensorType) -> ScatterAddGeometry:
    """Describe a segment sum of rows of x as a scatter-add: all columns share the segment numbers."""
    inner_steps = tuple(out.strides[1:]), tuple(x.strides[1:])
    y, updates = ((*steps, type.strides[0]) for steps, type in zip(inner_steps, (out, x), strict=True))
    index = (*[0] * (x.ndim - 1), segment_ids.strides[0])
    bits = segment_ids.dtype.itemsize, segment_ids.dtype.kind == "i"
    element = out.dtype.name, out.dtype.itemsize
    return ScatterAddGeometry(*element, out.shape[1:], out.shape[0], x.shape[0], y, index, updates, y, *bits)


class _IndexSum:
    """Kernels of a scatter-add, and their tables."""

    def __init__(
        self, adding: ScatterAddGeometry, workspace: int, x: CardPlace | None, index: CardPlace, updates: CardPlace
    ) -> None:
        self.adding, self.workspace, self.x, self.index, self.updates = adding, workspace, x, index, updates
        steps = (adding.index, adding.updates, adding.x, adding.y)
        axes = [(extent, tuple(each[a] if extent > 1 else 0 for each in steps)) for a, extent in enumerate(adding.rows)]
        self.lists, self.shared = (
            merged_axes(tuple(n for n, _ in group), [tuple(each[k] for _, each in group) for k in range(4)])
            for group in ([axis for axis in axes if axis[1][0]], [axis for axis in axes if not axis[1][0]])
        )
        self.count, self.rows = math.prod(n for n, _ in self.shared), math.prod(adding.rows)
        self.list_count = math.prod(n for n, _ in self.lists)
        self.copy = Move((*adding.rows, adding.extent), adding.x if x else adding.y, adding.y).merged()
        self.entries = max(_HEAD + 5 * len(self.lists) + 4 * len(self.shared), move_entries(len(self.copy.extents)))
        self.is_wide = is_wide(self.rows * max(adding.extent, adding.count), adding.extent)

    @property
    def is_addressable(self) -> bool:
        adding, extents = self.adding, (*self.adding.rows, max(self.adding.extent, self.adding.count))
        return adding.extent < _MAX_EXTENT and all(
            are_addressable(list(zip(extents, steps, strict=True)))
            for steps in (adding.x, adding.index, adding.updates, adding.y)
        )

    def recipe(self) -> CardRecipe | None:
        if not self.rows:
            return CardRecipe(())
        if self.adding.count <= MAX_SCANNED_INDICES:
            inner = self.count if self.adding.y[-1] > self.adding.itemsize else 1
            launch = self._launch("add_few", self.rows * self.adding.extent, self.adding.count, inner=inner)
            return CardRecipe((launch,), self._text())
        # number of index lists that are sorted together, and number of indices of each
        lists, keys = 1, self.workspace // (2 * _KEY)
        count = min(self.adding.count, keys, _MAX_EXTENT - 1)
        if count == self.adding.count:
            lists = min(self.list_count, keys // count)
        if not count or (count < self.adding.count and compute_dtype(self.adding.dtype) != self.adding.dtype):
            return None
        starts = range(0, self.list_count, lists), range(0, self.adding.count, count)
        if len(starts[0]) * len(starts[1]) > _MAX_CHUNKS:
            return None
        # Initialise the result before anything is added to it.
        y = CardPlace("result", 0)
        phases: list[Phase] = [self.copy.phase("move" if self.x else "clear", self.entries, self.x or y, y)]
        for first in starts[0]:
            for begin in starts[1]:
                sizes = min(lists, self.list_count - first), min(count, self.adding.count - begin)
                phases += self._sort_and_add(first, begin, *sizes)
        return CardRecipe(tuple(phases), self._text(), 2 * lists * count * _KEY)

    def _sort_and_add(self, first: int, begin: int, lists: int, count: int) -> Iterator[LaunchPhase]:
        """Sort some indices of some lists, alternating between the halves of the workspace, and add their updates."""
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
        """Launch a kernel on `items` items, for lists from `first` on and their indices from `begin` on."""
        adding, index, updates = self.adding, self.index, self.updates
        index = index._replace(offset=index.offset + begin * adding.index[-1])
        updates = updates._replace(offset=updates.offset + begin * adding.updates[-1])
        places = (read or self.x or CardPlace("result", 0), index, updates, CardPlace("result", 0), CardPlace("flag"))
        sizes = (keys, items, adding.extent, count, inner, self.count, width, first, int(self.x is not None))
        steps = (
            adding.index[-1],
            adding.updates[-1],
            adding.x[-1] if self.x else 0,
            adding.y[-1],
            self.index.number + 1,
            0,
        )
        axes = [
            entry
            for each, arrays in ((self.lists, range(4)), (self.shared, range(1, 4)))
            for entry in (*(n for n, _ in each), *(s[k] for k in arrays for _, s in each))
        ]
        return launch_items(kernel, items, self.entries, *places, *sizes, *steps, *axes)

    def _text(self) -> str:
        adding = self.adding
        lists, shared = len(self.lists), len(self.shared)
        shared_start = _HEAD + 5 * lists
        arrays = ("index", "updates", "x", "y")
        of_list = {name: _HEAD + (1 + k) * lists for k, name in enumerate(arrays)}
        of_row = {name: shared_start + (1 + k) * shared for k, name in enumerate(arrays[1:])}
        kernels = _KERNELS.format(
            index=INDICES[adding.index_bytes, adding.is_signed],
            run=_RUN,
            of_list=unravel("list", range(_HEAD, _HEAD + lists), of_list),
            of_index=unravel("list", range(_HEAD, _HEAD + lists), {"index": of_list["index"]}),
            of_row=unravel("among", range(shared_start, shared_start + shared), of_row),
        )
        kernels += move_kernels(len(self.copy.extents), ("move", "clear"))
        return card_text(adding.dtype, self.entries, kernels, is_wide=self.is_wide)


def gather_card_recipe(
    _: CardTerms, out: TensorType, x: TensorType, *index: TensorType, axis: int, **_attrs: Any
) -> CardRecipe | None:
    """Build the recipe that reads operand 0 along an axis at the indices, operand 1; an index outside is noted as 2.

    Return None for dtypes other than floats, for several index operands, and if 64 bits are too few for offsets.
    """
    if len(index) != 1 or out.dtype.name not in FLOATS:
        return None
    (indices,) = index
    index_type = indices.dtype.itemsize, indices.dtype.kind == "i"
    reach = tuple(x.shape[a] if a == axis else n for a, n in enumerate(out.shape))
    steps = tuple(0 if a == axis else step for a, step in enumerate(x.strides))
    if index_type not in INDICES or not all(
        are_addressable(list(zip(extents, type.strides, strict=True)))
        for extents, type in ((reach, x), (out.shape, indices), (out.shape, out))
    ):
        return None
    axes = merged_axes(out.shape, [indices.strides, steps])
    count = len(axes)
    entries = _READ_HEAD + 3 * count
    places = unravel(
        "item", range(_READ_HEAD, _READ_HEAD + count), {"index": _READ_HEAD + count, "x": _READ_HEAD + 2 * count}
    )
    kernel = _KERNEL.format(index=INDICES[index_type], places=places)
    text = card_text(out.dtype.name, entries, kernel, is_wide=is_wide(out.size))
    if not out.size:
        return CardRecipe(())
    pointers = (CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0), CardPlace("flag"))
    table = (*pointers, out.size, x.shape[axis], x.strides[axis], 2)
    axis_entries = (*(n for n, _ in axes), *(s[k] for k in range(2) for _, s in axes))
    return CardRecipe((launch_items("read_at", out.size, entries, *table, *axis_entries),), text)
