"""Card recipe: the phases that a GPU launches for one node, the memory that they work in, and the text of kernels.

A recipe is data, made before anything is compiled or bound. Its phases name the kernels of its text, and the places of
operands, results and workspace in their tables. For 2 · x of n elements:

    text      KERNEL double(GIVEN) { … EACH_ITEM(i, table[2]) ((E*)table[1])[i] = … }
    phases    LaunchPhase("double", grid, block, (CardPlace("operand", 0), CardPlace("result", 0), n))

Kernels are written in the dialect of `cuda_text`, with more words. E is a number as it lies in memory, F the type that
it is computed in: for float16 a float, rounded when it is stored. S and N are integers, with and without a sign, that
hold all counts. Words in capitals have other definitions for a C compiler, which tests use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.product import Product
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_plans import CudnnPlan
from engine.cuda.launch import MOST_BLOCKS, Extent, thread_blocks
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import FLOATS

CardPlaceKind = Literal["operand", "result", "workspace", "flag"]

#: threads of a block
_THREADS: Final = 256
#: numbers up to which 32 bits count items: a thread's next item lies within 32 bits, too
_NARROW: Final = 1 << 30
#: sum of offsets in bytes up to which none wraps around
_REACH: Final = 1 << 62
#: entries of the table of a move before the axes
_HEAD: Final = 3

_HALF: Final = """\
typedef unsigned short E;
DEVICE F WIDEN(E x) { F found; asm("cvt.f32.f16 %0, %1;" : "=f"(found) : "h"(x)); return found; }
DEVICE E NARROW(F x) { E found; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(found) : "f"(x)); return found; }
"""
_WHOLE: Final = """\
typedef F E;
#define WIDEN(x) (x)
#define NARROW(x) (x)
"""
_COUNTS: Final = {
    False: "typedef int S; typedef unsigned N;\n",
    True: "typedef long long S; typedef unsigned long long N;\n",
}
_EACH: Final = """\
#define EACH_ITEM(n, items) for (N n = BLOCK_X * (N)WIDE + THREAD_X; n < (N)(items); n += GRID_X * (N)WIDE)
#define EACH_LINE(n, lines) for (N n = BLOCK_Y * (N)HIGH + THREAD_Y; n < (N)(lines); n += GRID_Y * (N)HIGH)
"""
_MOVE: Final = """\
KERNEL {name}(GIVEN) {{
const long long* const table = TABLE;
EACH_ITEM(item, table[2]) {{
const char* from = (const char*)table[0]; char* to = (char*)table[1];
{places}
*(E*)to = {value};
}}
}}
"""
_VALUES: Final = {"move": "*(const E*)from", "round_off": "NARROW(*(const F*)from)", "clear": "NARROW((F)0)"}


class CardPlace(NamedTuple):
    """Place on the card: `offset` bytes behind the first element of an operand or result, the workspace, or the flag.

    The flag of a node is an int32 that is 0 before a run.
    """

    kind: CardPlaceKind
    number: int = 0
    offset: int = 0


#: an entry of a kernel's table
CardEntry = int | CardPlace


class LaunchPhase(NamedTuple):
    """A launch of `kernel` in the recipe's text, which takes a table of 64-bit entries by value.

    An entry is a number, or the address of a place. `grid` has blocks along x and y, `block` threads along these.
    """

    kernel: str
    grid: Extent
    block: Extent
    table: tuple[CardEntry, ...]


class ProductPhase(NamedTuple):
    """c = a · b, or c += a · b if it `adds`; the numbers at `bias`, if any, are added to each row.

    If it `widens`, c of float16 operands holds float32, in which its strides count: for sums that go on. `precision` is
    how float32 operands are read; `tf32x3` takes several phases, and is float32 in one.
    """

    of: Product
    a: CardPlace
    b: CardPlace
    c: CardPlace
    adds: bool = False
    bias: CardPlace | None = None
    widens: bool = False
    precision: Precision = IEEE


class CudnnPhase(NamedTuple):
    """A plan of cuDNN: the places of its graph's tensors, by number, and its workspace."""

    plan: CudnnPlan
    tensors: tuple[tuple[int, CardPlace], ...]
    workspace: CardPlace


class ClearPhase(NamedTuple):
    """A memset of `nbytes` to 0."""

    at: CardPlace
    nbytes: int


Phase = LaunchPhase | ProductPhase | CudnnPhase | ClearPhase


class CardRecipe(NamedTuple):
    """Phases that are launched one after the other on one stream.

    `text` is CUDA C with their kernels. `workspace` is in bytes, uninitialised, and of no other step meanwhile.
    `precision` is how float32 operands are read.
    """

    phases: tuple[Phase, ...]
    text: str = ""
    workspace: int = 0
    precision: Precision = IEEE

    @property
    def notes(self) -> bool:
        """Whether kernels may write to the node's flag."""
        tables = [phase.table for phase in self.phases if isinstance(phase, LaunchPhase)]
        return any(isinstance(x, CardPlace) and x.kind == "flag" for table in tables for x in table)


def computed_in(dtype: str) -> str:
    """Find the dtype in which numbers of a float dtype are computed."""
    return "float32" if dtype == "float16" else dtype


def card_definitions(dtype: str) -> str:
    """Define the words of kernels for NVRTC. `dtype` is one of FLOATS."""
    assert dtype in FLOATS
    return cuda_definitions(computed_in(dtype)) + (_HALF if dtype == "float16" else _WHOLE)


def card_text(dtype: str, entries: int, kernels: str, *, is_wide: bool) -> str:
    """Write a text with kernels whose tables have so many entries; with `is_wide`, counts have 64 bits."""
    table = f"struct Table {{ long long at[{entries}]; }};\n"
    return card_definitions(dtype) + table + _COUNTS[is_wide] + _EACH + kernels


def is_wide(*counts: int) -> bool:
    """Whether 32 bits are too few for these numbers, or for a thread's next item."""
    return any(abs(count) >= _NARROW for count in counts)


def are_addressable(axes: Sequence[tuple[int, int]]) -> bool:
    """Whether 64 bits hold all offsets: of each axis, how far indices go from 0, and its stride in bytes."""
    return sum((reach + 1) * (abs(step) + 1) for reach, step in axes) < _REACH


def by_items(kernel: str, items: int, entries: int, *table: CardEntry) -> LaunchPhase:
    """Launch a thread for each item, or for some; the table is filled up to so many entries."""
    blocks = max(1, min(-(-items // _THREADS), MOST_BLOCKS))
    return LaunchPhase(kernel, (blocks, 1), (_THREADS, 1), _filled(table, entries))


def by_lines(kernel: str, lines: int, items: int, entries: int, *table: CardEntry) -> LaunchPhase:
    """Launch a thread for each item of each line, or for some."""
    grid, block = thread_blocks(lines, items)
    return LaunchPhase(kernel, grid, block, _filled(table, entries))


def _filled(table: Sequence[CardEntry], entries: int) -> tuple[CardEntry, ...]:
    # A kernel is handed the whole table by value.
    assert len(table) <= entries
    return (*table, *[0] * (entries - len(table)))


def unravelled(number: str, extents: Sequence[int], steps: Mapping[str, int]) -> str:
    """Write statements that move pointers to item `number` of some axes.

    `extents` are the table's entries with the axes' extents, the last one counting fastest; `steps` has for each
    pointer the first of the entries with its strides.
    """
    lines = [f"{{ N left = {number};"]
    for axis, entry in reversed(list(enumerate(extents))):
        lines.append(f"{{ const N extent = table[{entry}], next = {'left / extent' if axis else '0'};")
        lines.append("const long long along = left - next * extent;")
        lines += [f"{pointer} += along * table[{first + axis}];" for pointer, first in steps.items()]
        lines.append("left = next; }")
    return "\n".join([*lines, "}"])


class Move(NamedTuple):
    """Copy of elements to another layout: extents, and strides in bytes where elements are read and written."""

    extents: tuple[int, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]

    @property
    def items(self) -> int:
        """Number of elements."""
        return math.prod(self.extents)

    @property
    def is_wide(self) -> bool:
        """Whether 32 bits are too few to count them."""
        return is_wide(self.items)

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets fit their words."""
        return all(are_addressable(list(zip(self.extents, s, strict=True))) for s in (self.read, self.written))

    def merged(self) -> Move:
        """Merge axes that lie in one another."""
        axes = merged_axes(self.extents, [self.read, self.written])
        read, written = (tuple(steps[k] for _, steps in axes) for k in range(2))
        return Move(tuple(extent for extent, _ in axes), read, written)

    def phase(self, kernel: str, entries: int, read: CardPlace, written: CardPlace) -> LaunchPhase:
        """Launch one of `move_kernels`, of as many axes."""
        axes = *self.extents, *self.read, *self.written
        return by_items(kernel, self.items, entries, read, written, self.items, *axes)


def move_entries(axes: int) -> int:
    """Count the entries of the table of a move."""
    return _HEAD + 3 * axes


def move_kernels(axes: int, names: Sequence[str]) -> str:
    """Write kernels for moves of so many axes: `move` copies bits, `round_off` rounds, `clear` writes zeros."""
    places = unravelled("item", range(_HEAD, _HEAD + axes), {"from": _HEAD + axes, "to": _HEAD + 2 * axes})
    return "".join(_MOVE.format(name=name, places=places, value=_VALUES[name]) for name in names)
