"""Card recipe: the phases that a GPU launches for one node, the memory that they work in, and the text of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from engine.codegen.microkernels.axis_kernels import merged_axes
from engine.codegen.microkernels.product import Product
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_plans import CudnnPlan
from engine.cuda.launch import MOST_BLOCKS, Extent, thread_blocks
from engine.ir.dtypes import FLOATS
from engine.ir.run_report import IEEE, Precision

CardPlaceKind = Literal["operand", "result", "workspace", "flag"]


class CardPlace(NamedTuple):
    """Place of something on the card: `offset` bytes behind the first element of an operand or a result, by its
    number, behind the beginning of the workspace, or behind the flag of the node: an int32 that is 0 before a run.
    """

    kind: CardPlaceKind
    number: int = 0
    offset: int = 0


class LaunchPhase(NamedTuple):
    """A launch of `kernel`, one of those in the recipe's text, which takes a table of 64-bit entries by value.

    An entry is a number, or the address of a place. `grid` has blocks along x and y, `block` threads along these.
    """

    kernel: str
    grid: Extent
    block: Extent
    table: tuple[int | CardPlace, ...]


class ProductPhase(NamedTuple):
    """c = a · b, or, where it `adds`, c += a · b; to each row the numbers at `bias` are added, where there are some.

    With `widens`, of float16 operands c holds float32, and its strides count such: for sums that go on. `precision` is
    how float32 operands are read; `tf32x3` is several phases on parts of them, and in one as float32.
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
    """A plan of cuDNN's: where the tensors lie, by the number that its graph has for each, and where it works."""

    plan: CudnnPlan
    tensors: tuple[tuple[int, CardPlace], ...]
    workspace: CardPlace


class ClearPhase(NamedTuple):
    """`nbytes` at a place become 0."""

    at: CardPlace
    nbytes: int


Phase = LaunchPhase | ProductPhase | CudnnPhase | ClearPhase


class CardRecipe(NamedTuple):
    """Phases that are launched one after the other on one stream.

    `text` is CUDA C with their kernels, which is compiled before. `workspace` is in bytes: nobody else works there
    meanwhile, and what lies there before is anything. `precision` is how all of it reads float32 operands.
    """

    phases: tuple[Phase, ...]
    text: str = ""
    workspace: int = 0
    precision: Precision = IEEE

    @property
    def notes(self) -> bool:
        """Whether its kernels may write to the node's flag."""
        launches = [phase for phase in self.phases if isinstance(phase, LaunchPhase)]
        return any(isinstance(x, CardPlace) and x.kind == "flag" for launch in launches for x in launch.table)


# What the kernels of nodes are written in for cards: the dialect of loops, and how threads share what there is to do.
#
# As there, words in capitals have other definitions for a C compiler. E is a number as it lies in memory, F what it is
# computed in: for float16 a float, rounded when it is stored. S and N are integers, with a sign and without, that hold
# all that is counted.

#: what an entry of a table is
CardEntry = int | CardPlace

#: threads of a block
_THREADS: Final = 256
#: numbers up to which 32 bits count items: a thread's next one lies within what they hold, too
_NARROW: Final = 1 << 30
#: what offsets in bytes may come to, so that none wraps around
_REACH: Final = 1 << 62

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


def computed_in(dtype: str) -> str:
    """The dtype that numbers of a float dtype are computed in."""
    return "float32" if dtype == "float16" else dtype


def card_definitions(dtype: str) -> str:
    """What kernels are written in, for NVRTC: what a C compiler takes other definitions for. One of FLOATS."""
    assert dtype in FLOATS
    return cuda_definitions(computed_in(dtype)) + (_HALF if dtype == "float16" else _WHOLE)


def card_text(dtype: str, entries: int, kernels: str, *, is_wide: bool) -> str:
    """A text with kernels whose tables have so many entries; with `is_wide`, 64 bits count."""
    table = f"struct Table {{ long long at[{entries}]; }};\n"
    return card_definitions(dtype) + table + _COUNTS[is_wide] + _EACH + kernels


def is_wide(*counts: int) -> bool:
    """Whether 32 bits do not hold these numbers, or what threads come to beside them."""
    return any(abs(count) >= _NARROW for count in counts)


def are_addressable(axes: Sequence[tuple[int, int]]) -> bool:
    """Whether 64 bits hold all offsets: of each axis, how far indices go from 0, and bytes to the next one."""
    return sum((reach + 1) * (abs(step) + 1) for reach, step in axes) < _REACH


def by_items(kernel: str, items: int, entries: int, *table: CardEntry) -> LaunchPhase:
    """A thread for each item, or some; the table is filled up to so many entries."""
    blocks = max(1, min(-(-items // _THREADS), MOST_BLOCKS))
    return LaunchPhase(kernel, (blocks, 1), (_THREADS, 1), _filled(table, entries))


def by_lines(kernel: str, lines: int, items: int, entries: int, *table: CardEntry) -> LaunchPhase:
    """A thread for each item of each line, or some."""
    grid, block = thread_blocks(lines, items)
    return LaunchPhase(kernel, grid, block, _filled(table, entries))


def _filled(table: Sequence[CardEntry], entries: int) -> tuple[CardEntry, ...]:
    # A kernel is handed the whole table by value.
    assert len(table) <= entries
    return (*table, *[0] * (entries - len(table)))


def unravelled(number: str, extents: Sequence[int], steps: Mapping[str, int]) -> str:
    """Statements that move pointers to where item `number` of some axes is.

    `extents` are the entries of the table that have those of the axes, the last one counting fastest; `steps` says for
    each pointer from which entry on the table has the bytes to step along them.
    """
    return "\n".join(_unravelled(number, extents, steps))


def _unravelled(number: str, extents: Sequence[int], steps: Mapping[str, int]) -> Iterator[str]:
    yield f"{{ N left = {number};"
    for axis, entry in reversed(list(enumerate(extents))):
        yield f"{{ const N extent = table[{entry}], next = {'left / extent' if axis else '0'};"
        yield "const long long along = left - next * extent;"
        for pointer, first in steps.items():
            yield f"{pointer} += along * table[{first + axis}];"
        yield "left = next; }"
    yield "}"


# Moves on a card: elements that lie in one way, laid in another; those that were computed wider are rounded.

#: entries of a table before the axes
_HEAD: Final = 3

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
_VALUES: Final = {
    "move": "*(const E*)from",
    "round_off": "NARROW(*(const F*)from)",
    "clear": "NARROW((F)0)",
}


class Move(NamedTuple):
    """Extents, and bytes to step along them: where elements are read, and where they are written."""

    extents: tuple[int, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]

    @property
    def items(self) -> int:
        """Elements."""
        return math.prod(self.extents)

    @property
    def is_wide(self) -> bool:
        """Whether 32 bits do not count them."""
        return is_wide(self.items)

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets fit their words."""
        return all(are_addressable(list(zip(self.extents, s, strict=True))) for s in (self.read, self.written))

    def merged(self) -> Move:
        """The same with as few axes as can be."""
        axes = merged_axes(self.extents, [self.read, self.written])
        read, written = (tuple(steps[k] for _, steps in axes) for k in range(2))
        return Move(tuple(extent for extent, _ in axes), read, written)

    def phase(self, kernel: str, entries: int, read: CardPlace, written: CardPlace) -> LaunchPhase:
        """The launch of one of `move_kernels`, of as many axes."""
        return by_items(
            kernel, self.items, entries, read, written, self.items, *self.extents, *self.read, *self.written
        )


def move_entries(axes: int) -> int:
    """Entries of the table of a move."""
    return _HEAD + 3 * axes


def move_kernels(axes: int, names: Sequence[str]) -> str:
    """Kernels for moves of so many axes: `move` copies bits, `round_off` rounds, `clear` reads nothing."""
    places = unravelled("item", range(_HEAD, _HEAD + axes), {"from": _HEAD + axes, "to": _HEAD + 2 * axes})
    return "".join(_MOVE.format(name=name, places=places, value=_VALUES[name]) for name in names)
