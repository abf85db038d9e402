"""The inner loop of all products: a tile of accumulators in registers, rows of numbers × vectors of columns.

Each step multiplies `rows` numbers, read one by one and spread over a vector, by `vectors` vectors: as many loads as
there are registers to a side, for as many multiply-adds as the tile has. K. Goto and R. van de Geijn, "Anatomy of
high-performance matrix multiplication" (2008); F. Van Zee and R. van de Geijn, "BLIS" (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from engine.microkernels.routine import Int64, Routine
from engine.native.processor import described_processor

#: bytes of a vector whose lanes are added up: the same for all processors, since the order of a sum is its lanes'
SUMMED: Final = 64
#: items of a kernel, at least, so that threads find work
ITEMS: Final = 8
#: tiles of rows that a packed panel must serve, at least, where several items share the rows
TILES_OF_A_PANEL: Final = 8
#: what a step costs beside its multiply-adds, in these: an address and a load for each row, and for each vector
_LOAD: Final = 0.3
_STEP: Final = 1.5
#: multiply-adds that must be under way at once to fill the units: a tile of fewer waits
_UNDER_WAY: Final = 8


class Vectors(NamedTuple):
    """The vector registers of this processor: bytes of one, and how many."""

    nbytes: int
    registers: int


@cache
def vectors() -> Vectors:
    """Those of this machine; of AVX2, where the system does not say. No bit of a result depends on them."""
    described = described_processor() or ""
    if "avx512f" in described:
        return Vectors(64, 32)
    return Vectors(16, 32) if "asimd" in described else Vectors(32, 16)


class TileShape(NamedTuple):
    """Numbers of one side, and vectors of the other."""

    rows: int
    vectors: int


def lanes_for(itemsize: int) -> int:
    """Floats of so many bytes in a vector."""
    return vectors().nbytes // itemsize


def tile_shape(rows: int, columns: int, lanes: int) -> TileShape:
    """The tile that covers `rows` × `columns` at the least cost, of what fits the registers: one more, and LLVM spills.

    Beside the accumulators there are a number that is spread, and the vectors of a step.
    """
    most = vectors().registers - 1
    shapes = (
        TileShape(p, v)
        for v in (1, 2, 3, 4)
        if v == 1 or columns > (v - 1) * lanes
        for p in range(1, max(1, min(rows, (most - v - 1) // v)) + 1)
    )
    return min(shapes, key=lambda shape: _cost(shape, rows, columns, lanes))


def _cost(shape: TileShape, rows: int, columns: int, lanes: int) -> float:
    p, v = shape
    tiles = -(-rows // p) * -(-columns // (v * lanes))
    return tiles * (max(p * v, _UNDER_WAY) + _LOAD * (p + v) + _STEP)


class SumLoop(NamedTuple):
    """A loop of the sum: how often, and how many bytes further each time on the side of the rows, and the vectors."""

    times: Int64
    row_step: int
    vector_step: int


def accumulate(
    to: Routine,
    sums: Sequence[str],
    rows: Sequence[int],
    sum_loops: Sequence[SumLoop],
    numbers: str,
    columns: str,
    masks: Sequence[str] = (),
) -> list[str]:
    """The sums, row by row, with numbers[rows[p] + …] · columns[v + …] added for each step of the nested loops.

    `rows` are the offsets of the numbers of a step; of its vectors, what is outside `masks` is not read.
    """
    if not sum_loops:
        return _step(to, sums, rows, numbers, columns, masks)
    (times, row_step, vector_step), *inner = sum_loops
    if times == 1:
        return accumulate(to, sums, rows, inner, numbers, columns, masks)
    carried = [*((to.vector, s) for s in sums), ("ptr", numbers), ("ptr", columns)]
    with to.loop(0, times, carried=carried) as each:
        *so_far, a, b = each.carried
        added = accumulate(to, so_far, rows, inner, a, b, masks)
        each.carry = [*added, to.at(a, row_step), to.at(b, vector_step)]
    return each.carried[:-2]


def _step(
    to: Routine, sums: Sequence[str], rows: Sequence[int], numbers: str, columns: str, masks: Sequence[str]
) -> list[str]:
    count = len(sums) // len(rows)
    width = to.lanes * to.size
    vectors = [to.load(to.at(columns, v * width), masks[v] if masks else "") for v in range(count)]
    added: list[str] = []
    for p, offset in enumerate(rows):
        number = to.broadcast(to.at(numbers, offset))
        added += [to.fma(number, vector, sums[p * count + v]) for v, vector in enumerate(vectors)]
    return added
