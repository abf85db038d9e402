"""What the kernels of nodes are written in for cards: the dialect of loops, and how threads share what there is to do.

As there, words in capitals have other definitions for a C compiler. E is a number as it lies in memory, F what it is
computed in: for float16 a float, rounded when it is stored. S and N are integers, with a sign and without, that hold
all that is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.cards.card_recipe import CardPlace, LaunchPhase
from engine.graph.dtypes import FLOATS
from engine.loops.cuda_launch import MOST_BLOCKS, thread_blocks
from engine.loops.cuda_text import cuda_definitions

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
