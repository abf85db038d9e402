"""GPU recipe: the phases that are launched for one node, their workspace, and the text of their kernels.

A recipe is data, built before anything is compiled or bound. Its phases name kernels of its text, and the places of
operands, results and workspace in the kernels' tables. For 2 · x with n elements:

    text      KERNEL double(GIVEN) { … EACH_ITEM(i, table[2]) ((E*)table[1])[i] = … }
    phases    LaunchPhase("double", grid, block, (CardPlace("operand", 0), CardPlace("result", 0), n))

Kernels are written in the dialect of `cuda_text`, with more macros. E is the type of an element in memory, F the type
that it is computed in: float for float16, rounded when it is stored. S and N are signed and unsigned integers that hold
every count. Words in capitals have other definitions for a C compiler, which tests use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.product import Product
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_plans import CudnnPlan
from engine.cuda.launch import MAX_BLOCKS, Extent, thread_blocks
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import FLOATS

CardPlaceKind = Literal["operand", "result", "workspace", "flag"]

#: threads of a block
_THREADS: Final = 256
#: bound of counts up to which 32 bits suffice: a thread's next item has to fit 32 bits, too
_NARROW: Final = 1 << 30
#: bound of the sum of byte offsets below which no offset overflows
_MAX_OFFSETS: Final = 1 << 62
#: entries of a move's table before the axes
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
    """Address on the GPU: `offset` bytes after the start of an operand, a result, the workspace, or the flag.

    The flag of a node is an int32 that is 0 before a run.
    """

    kind: CardPlaceKind
    number: int = 0
    offset: int = 0


#: entry of a kernel's table
CardEntry = int | CardPlace


class LaunchPhase(NamedTuple):
    """Launch of `kernel` in the recipe's text. It takes a table of 64-bit entries by value.

    An entry is a number, or the address of a place. `grid` has blocks along x and y, `block` threads along x and y.
    """

    kernel: str
    grid: Extent
    block: Extent
    table: tuple[CardEntry, ...]


class ProductPhase(NamedTuple):
    """Product c = a · b, or c += a · b if `adds`; the vector at `bias`, if any, is added to each row.

    If `widens`, c of float16 operands holds float32, and its strides count float32: for sums that continue. `precision`
    is how float32 operands are read; `tf32x3` takes several phases, and means float32 in a single one.
    """

    product: Product
    a: CardPlace
    b: CardPlace
    c: CardPlace
    adds: bool = False
    bias: CardPlace | None = None
    widens: bool = False
    precision: Precision = IEEE


class CudnnPhase(NamedTuple):
    """Launch of a cuDNN plan: the places of its graph's tensors by number, and its workspace."""

    plan: CudnnPlan
    tensors: tuple[tuple[int, CardPlace], ...]
    workspace: CardPlace


class ClearPhase(NamedTuple):
    """Memset of `nbytes` bytes to 0."""

    place: CardPlace
    nbytes: int


Phase = LaunchPhase | ProductPhase | CudnnPhase | ClearPhase


class CardRecipe(NamedTuple):
    """Phases that are launched one after the other on one stream.

    `text` is CUDA C with their kernels. `workspace` is in bytes, uninitialised, and not shared with a concurrent step.
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


def compute_dtype(dtype: str) -> str:
    """Return the dtype in which elements of a float dtype are computed."""
    return "float32" if dtype == "float16" else dtype


def card_definitions(dtype: str) -> str:
    """Return the macro definitions of kernels for NVRTC. `dtype` is one of FLOATS."""
    assert dtype in FLOATS
    return cuda_definitions(compute_dtype(dtype)) + (_HALF if dtype == "float16" else _WHOLE)


def card_text(dtype: str, entries: int, kernels: str, *, is_wide: bool) -> str:
    """Return a text with kernels whose tables have `entries` entries; if `is_wide`, counts have 64 bits."""
    table = f"struct Table {{ long long at[{entries}]; }};\n"
    return card_definitions(dtype) + table + _COUNTS[is_wide] + _EACH + kernels


def is_wide(*counts: int) -> bool:
    """Return whether 32 bits are too few for these counts, or for a thread's next item."""
    return any(abs(count) >= _NARROW for count in counts)


def are_addressable(axes: Sequence[tuple[int, int]]) -> bool:
    """Return whether 64 bits hold all offsets, given each axis's largest index and its stride in bytes."""
    return sum((reach + 1) * (abs(step) + 1) for reach, step in axes) < _MAX_OFFSETS


def launch_items(kernel: str, items: int, entries: int, *table: CardEntry) -> LaunchPhase:
    """Launch at most one thread per item; the table is padded to `entries`."""
    blocks = max(1, min(-(-items // _THREADS), MAX_BLOCKS))
    return LaunchPhase(kernel, (blocks, 1), (_THREADS, 1), _padded(table, entries))


def launch_lines(kernel: str, lines: int, items: int, entries: int, *table: CardEntry) -> LaunchPhase:
    """Launch at most one thread per item of each line."""
    grid, block = thread_blocks(lines, items)
    return LaunchPhase(kernel, grid, block, _padded(table, entries))


def _padded(table: Sequence[CardEntry], entries: int) -> tuple[CardEntry, ...]:
    # A kernel gets the whole table by value.
    assert len(table) <= entries
    return (*table, *[0] * (entries - len(table)))


def unravel(number: str, extents: Sequence[int], steps: Mapping[str, int]) -> str:
    """Return statements that move pointers to item `number` of some axes.

    `extents` are the table entries with the axes' extents, the last axis varying fastest; `steps` maps each pointer to
    the first of the entries with its strides.
    """
    lines = [f"{{ N left = {number};"]
    for axis, entry in reversed(list(enumerate(extents))):
        lines.append(f"{{ const N extent = table[{entry}], next = {'left / extent' if axis else '0'};")
        lines.append("const long long along = left - next * extent;")
        lines += [f"{pointer} += along * table[{first + axis}];" for pointer, first in steps.items()]
        lines.append("left = next; }")
    return "\n".join([*lines, "}"])


class Move(NamedTuple):
    """Copy of elements to another layout: extents, and strides in bytes of the source and the target."""

    extents: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def items(self) -> int:
        """Number of elements."""
        return math.prod(self.extents)

    @property
    def is_wide(self) -> bool:
        """Whether 32 bits are too few to count the elements."""
        return is_wide(self.items)

    @property
    def is_addressable(self) -> bool:
        """Whether 64 bits hold all offsets."""
        return all(are_addressable(list(zip(self.extents, s, strict=True))) for s in (self.source, self.target))

    def merged(self) -> Move:
        """Return the move with adjacent axes merged where both layouts allow it."""
        axes = merged_axes(self.extents, [self.source, self.target])
        source, target = (tuple(steps[k] for _, steps in axes) for k in range(2))
        return Move(tuple(extent for extent, _ in axes), source, target)

    def phase(self, kernel: str, entries: int, source: CardPlace, target: CardPlace) -> LaunchPhase:
        """Return the launch of one of `move_kernels` with as many axes."""
        axes = *self.extents, *self.source, *self.target
        return launch_items(kernel, self.items, entries, source, target, self.items, *axes)


def move_entries(axes: int) -> int:
    """Return the number of entries of a move's table."""
    return _HEAD + 3 * axes


def move_kernels(axes: int, names: Sequence[str]) -> str:
    """Return kernels for moves with `axes` axes: `move` copies bits, `round_off` rounds, `clear` writes zeros."""
    places = unravel("item", range(_HEAD, _HEAD + axes), {"from": _HEAD + axes, "to": _HEAD + 2 * axes})
    return "".join(_MOVE.format(name=name, places=places, value=_VALUES[name]) for name in names)
