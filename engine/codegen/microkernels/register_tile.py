"""The inner loop of all products: a tile of accumulators in registers, rows of numbers × vectors of columns.

Each step multiplies `rows` numbers, read one by one and spread over a vector, by `vectors` vectors: as many loads as
there are registers to a side, for as many multiply-adds as the tile has. K. Goto and R. van de Geijn, "Anatomy of
high-performance matrix multiplication" (2008); F. Van Zee and R. van de Geijn, "BLIS" (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from engine.codegen.microkernels.routine import Int64, Routine
from engine.codegen.native.machine_code import described_processor

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
    """Describe those of this machine; of AVX2, if the system does not say. No bit of a result depends on them."""
    described = described_processor() or ""
    if "avx512f" in described:
        return Vectors(64, 32)
    return Vectors(16, 32) if "asimd" in described else Vectors(32, 16)


class TileShape(NamedTuple):
    """Numbers of one side, and vectors of the other."""

    rows: int
    vectors: int


def lanes_for(itemsize: int) -> int:
    """Count the floats of so many bytes in a vector."""
    return vectors().nbytes // itemsize


def tile_shape(rows: int, columns: int, lanes: int) -> TileShape:
    """Choose the tile that covers `rows` × `columns` at the least cost, of those that fit the registers.

    With one register more, LLVM spills: beside accumulators there are a number that is spread, and a step's vectors.
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


def rows_of_item(rows: int, tile: int, panels: int) -> int:
    """Choose the rows of an item: all, or if there are few panels, so many that packing one is soon repaid."""
    tiles = -(-rows // tile)
    return tile * max(-(-tiles // -(-ITEMS // panels)), min(tiles, TILES_OF_A_PANEL))


class SumLoop(NamedTuple):
    """A loop of the sum: its rounds, and the bytes that one moves the rows and the vectors."""

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
    """Add to the sums, row by row, numbers[rows[p] + …] · columns[v + …] for each step of the nested loops.

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


class Panel(NamedTuple):
    """Vectors to multiply by, from `start` on; `sum_loops` are the steps of a sum.

    `left` columns are wanted: unless `whole`, others are not written, and unless they are `packed`, not read. If `adds`
    is not 0, sums go on from what lies in their place: so a sum in several parts has one order, from first to last.
    """

    start: str
    sum_loops: Sequence[SumLoop]
    left: Int64
    adds: Int64 = 0
    whole: bool = False
    packed: bool = True


class RowTiles(NamedTuple):
    """`rows` rows, `step` bytes apart; their sums go to rows `result_step` bytes apart.

    Tiles have at most `tile` rows, and `vectors` vectors.
    """

    rows: int
    step: int
    result_step: int
    tile: int
    vectors: int

    def multiply(
        self,
        to: Routine,
        numbers: str,
        panel: Panel,
        result: str,
        first: Int64 = 0,
        past: Int64 | None = None,
        abreast: int = 1,
    ) -> None:
        """Compute the rows `first` to before `past`, by default all; both are multiples of `tile`, or the end.

        `abreast` panels lie side by side, and in the result, too: all are multiplied by a tile of rows before the next.
        """
        past = self.rows if past is None else past
        rest = self.rows % self.tile
        with to.loop(first, to.least(past, self.rows - rest), self.tile) as row:
            self._tiles(to, numbers, panel, result, row.index, self.tile, abreast)
        if rest:
            with to.when("eq", past, self.rows):
                self._tiles(to, numbers, panel, result, self.rows - rest, rest, abreast)

    def _tiles(self, to: Routine, numbers: str, panel: Panel, result: str, row: Int64, rows: int, abreast: int) -> None:
        numbers, result = to.at(numbers, to.mul(row, self.step)), to.at(result, to.mul(row, self.result_step))
        if abreast == 1:
            self._tile(to, numbers, panel, result, rows)
            return
        width = self.vectors * to.lanes
        with to.loop(0, to.least(panel.left, abreast * width), width) as column:
            there = to.mul(column.index, to.size)
            one = panel._replace(start=to.at(panel.start, there), left=to.sub(panel.left, column.index))
            self._tile(to, numbers, one, to.at(result, there), rows)

    def _tile(self, to: Routine, numbers: str, panel: Panel, result: str, rows: int) -> None:
        width = to.lanes * to.size
        places = [to.at(result, p * self.result_step + v * width) for p in range(rows) for v in range(self.vectors)]
        sums = [to.zero] * len(places)
        if panel.adds != 0:
            before = self._masks(to, to.choose("eq", panel.adds, 0, 0, panel.left))
            sums = [to.load(place, before[i % self.vectors]) for i, place in enumerate(places)]
        masks = [""] * self.vectors if panel.whole else self._masks(to, panel.left)
        offsets = [p * self.step for p in range(rows)]
        read = () if panel.packed else masks
        sums = accumulate(to, sums, offsets, panel.sum_loops, numbers, panel.start, read)
        for i, (total, place) in enumerate(zip(sums, places, strict=True)):
            to.store(total, place, masks[i % self.vectors])

    def _masks(self, to: Routine, left: Int64) -> list[str]:
        return [to.below(to.sub(left, v * to.lanes)) for v in range(self.vectors)]


def copy_rows(to: Routine, source: str, packed: str, rows: Int64, step: int, vectors: int, left: Int64) -> None:
    """Pack `vectors` vectors of each of `rows` rows, `step` bytes apart; there are `left` columns, then zeros."""
    width = to.lanes * to.size
    masks = [to.below(to.sub(left, v * to.lanes)) for v in range(vectors)]
    with to.loop(0, rows, carried=[("ptr", source), ("ptr", packed)]) as row:
        here, there = row.carried
        for v, mask in enumerate(masks):
            to.store(to.load(to.at(here, v * width), mask), to.at(there, v * width))
        row.carry = [to.at(here, step), to.at(there, vectors * width)]


def transpose_rows(
    to: Routine, source: str, packed: str, rows: Int64, column: int, step: int, vectors: int, left: Int64
) -> None:
    """Pack as `copy_rows` a matrix whose columns are `column` bytes apart, and whose rows `step`.

    If rows lie side by side, blocks of as many as there are lanes are turned in registers: memory for whole blocks is
    written.
    """
    if step == to.size:
        with to.loop(0, vectors) as vector, to.loop(0, rows, to.lanes) as row:
            _turn(to, source, packed, row.index, to.sub(rows, row.index), column, vector.index, vectors, left)
        return
    width = to.lanes * to.size
    masks = [to.below(to.sub(left, v * to.lanes)) or to.first(to.lanes) for v in range(vectors)]
    with to.loop(0, rows, carried=[("ptr", source), ("ptr", packed)]) as row:
        here, there = row.carried
        for v, mask in enumerate(masks):
            to.store(to.gather(to.at(here, v * to.lanes * column), column, mask), to.at(there, v * width))
        row.carry = [to.at(here, step), to.at(there, vectors * width)]


def _turn(
    to: Routine, source: str, packed: str, row: Int64, rows: Int64, column: int, v: Int64, vectors: int, left: Int64
) -> None:
    """Turn a block of rows, of which `rows` are there, of the columns of vector v: each column is read as a vector."""
    width, some = to.lanes * to.size, to.below(rows)
    here, first = to.at(source, to.mul(row, to.size)), to.mul(v, to.lanes)
    read = []
    for lane in range(to.lanes):
        # a column that is not there is read as the last one that is, and never stored
        number = to.least(to.add(first, lane), to.sub(left, 1))
        read.append(to.load(to.at(here, to.mul(number, column)), some))
    there = to.at(to.at(packed, to.mul(row, vectors * width)), to.mul(v, width))
    for r, vector in enumerate(to.transposed(read)):
        to.store(vector, to.at(there, r * vectors * width))
