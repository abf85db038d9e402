"""The inner loop of all products: a tile of sums held in registers, rows of numbers × vectors of columns.

Each step loads `vectors` vectors of a panel. It then broadcasts `rows` numbers one by one and multiplies each with all
these vectors, adding to the tile. So rows + vectors loads serve rows · vectors multiply-adds, and the tile is chosen as
large as the registers allow. K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication" (2008);
F. Van Zee and R. van de Geijn, "BLIS" (2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from engine.codegen.microkernels.routine import Int64, Routine
from engine.codegen.native.machine_code import described_processor

#: bytes of vectors whose lanes are summed: the same for all processors, since the lanes determine the order of the sum
SUMMED: Final = 64
#: least number of items of a kernel, so that all threads have work
ITEMS: Final = 8
#: least number of row tiles that reuse a packed panel, if several items divide the rows
TILES_OF_A_PANEL: Final = 8
#: cost of a step in multiply-adds, besides its own: for the address and load of each row and vector, and per step
_LOAD: Final = 0.3
_STEP: Final = 1.5
#: multiply-adds that must be in flight to hide their latency: a smaller tile waits
_UNDER_WAY: Final = 8


class Vectors(NamedTuple):
    """Vector registers of this processor: bytes of one, and their number."""

    nbytes: int
    registers: int


@cache
def vectors() -> Vectors:
    """Describe this machine's vector registers; assume AVX2 if unknown. Bits of results do not depend on them."""
    described = described_processor() or ""
    if "avx512f" in described:
        return Vectors(64, 32)
    return Vectors(16, 32) if "asimd" in described else Vectors(32, 16)


class TileShape(NamedTuple):
    """Shape of a tile: rows of numbers, and vectors of columns."""

    rows: int
    vectors: int


def lanes_for(itemsize: int) -> int:
    """Return the number of floats in a vector."""
    return vectors().nbytes // itemsize


def tile_shape(rows: int, columns: int, lanes: int) -> TileShape:
    """Choose the tile that covers `rows` × `columns` at the least cost, among those that fit the registers.

    Besides the tile, one register holds the broadcast number, and others the step's vectors. With one register more,
    LLVM spills.
    """
    registers = vectors().registers - 1
    shapes = (
        TileShape(p, v)
        for v in (1, 2, 3, 4)
        if v == 1 or columns > (v - 1) * lanes
        for p in range(1, max(1, min(rows, (registers - v - 1) // v)) + 1)
    )
    return min(shapes, key=lambda shape: _cost(shape, rows, columns, lanes))


def _cost(shape: TileShape, rows: int, columns: int, lanes: int) -> float:
    p, v = shape
    tiles = -(-rows // p) * -(-columns // (v * lanes))
    # A tile of few multiply-adds waits for their latency, and takes as long as _UNDER_WAY of them.
    return tiles * (max(p * v, _UNDER_WAY) + _LOAD * (p + v) + _STEP)


def rows_of_item(rows: int, tile: int, panels: int) -> int:
    """Choose the rows of an item: all; or if there are few panels, fewer, but enough to repay packing a panel."""
    # Aim at ITEMS items in all, but let each packed panel serve at least TILES_OF_A_PANEL tiles.
    tiles = -(-rows // tile)
    return tile * max(-(-tiles // -(-ITEMS // panels)), min(tiles, TILES_OF_A_PANEL))


class SumLoop(NamedTuple):
    """A loop of the sum: its iterations, and the bytes by which each advances the rows and the vectors."""

    times: Int64
    row_step: int
    vector_step: int


def accumulate(
    ir: Routine,
    sums: Sequence[str],
    rows: Sequence[int],
    sum_loops: Sequence[SumLoop],
    numbers: str,
    columns: str,
    masks: Sequence[str] = (),
) -> list[str]:
    """Add numbers[rows[p] + …] · columns[v + …] to the sums, row by row, for each step of the nested loops.

    `rows` are the offsets of a step's numbers. Vectors are not read outside `masks`.
    """
    if not sum_loops:
        return _step(ir, sums, rows, numbers, columns, masks)
    (times, row_step, vector_step), *inner = sum_loops
    if times == 1:
        return accumulate(ir, sums, rows, inner, numbers, columns, masks)
    # Pointers are carried and advanced: in a nest of loops, that is cheaper than addresses from several counters.
    carried = [*((ir.vector, s) for s in sums), ("ptr", numbers), ("ptr", columns)]
    with ir.loop(0, times, carried=carried) as each:
        *so_far, a, b = each.carried
        added = accumulate(ir, so_far, rows, inner, a, b, masks)
        each.carry = [*added, ir.at(a, row_step), ir.at(b, vector_step)]
    return each.carried[:-2]


def _step(
    ir: Routine, sums: Sequence[str], rows: Sequence[int], numbers: str, columns: str, masks: Sequence[str]
) -> list[str]:
    count = len(sums) // len(rows)
    width = ir.lanes * ir.size
    vectors = [ir.load(ir.at(columns, v * width), masks[v] if masks else "") for v in range(count)]
    added: list[str] = []
    for p, offset in enumerate(rows):
        number = ir.broadcast(ir.at(numbers, offset))
        added += [ir.fma(number, vector, sums[p * count + v]) for v, vector in enumerate(vectors)]
    return added


class Panel(NamedTuple):
    """Vectors to multiply by, from `start` on; `sum_loops` are the loops over the steps of a sum.

    `remaining` columns exist. Unless `whole`, columns beyond them are not written; unless `packed`, they are not read.
    If `adds` is not 0, the sums continue from the values in the result, so that a sum computed in several parts is
    added in a single order.
    """

    start: str
    sum_loops: Sequence[SumLoop]
    remaining: Int64
    adds: Int64 = 0
    whole: bool = False
    packed: bool = True


class RowTiles(NamedTuple):
    """`rows` rows, `step` bytes apart, whose sums go to result rows `result_step` bytes apart.

    A tile has at most `tile` rows and `vectors` vectors.
    """

    rows: int
    step: int
    result_step: int
    tile: int
    vectors: int

    def multiply(
        self,
        ir: Routine,
        numbers: str,
        panel: Panel,
        result: str,
        first: Int64 = 0,
        past: Int64 | None = None,
        abreast: int = 1,
    ) -> None:
        """Compute the rows `first` to before `past`, by default all. Both are multiples of `tile`, or the end.

        `abreast` adjacent panels are multiplied by a tile of rows before the next tile, so that the tile's numbers stay
        in the cache.
        """
        past = self.rows if past is None else past
        last_rows = self.rows % self.tile
        with ir.loop(first, ir.minimum(past, self.rows - last_rows), self.tile) as row:
            self._tiles(ir, numbers, panel, result, row.index, self.tile, abreast)
        if last_rows:
            with ir.when("eq", past, self.rows):
                self._tiles(ir, numbers, panel, result, self.rows - last_rows, last_rows, abreast)

    def _tiles(self, ir: Routine, numbers: str, panel: Panel, result: str, row: Int64, rows: int, abreast: int) -> None:
        numbers, result = ir.at(numbers, ir.mul(row, self.step)), ir.at(result, ir.mul(row, self.result_step))
        if abreast == 1:
            self._tile(ir, numbers, panel, result, rows)
            return
        width = self.vectors * ir.lanes
        with ir.loop(0, ir.minimum(panel.remaining, abreast * width), width) as column:
            column_offset = ir.mul(column.index, ir.size)
            each_panel = panel._replace(
                start=ir.at(panel.start, column_offset), remaining=ir.sub(panel.remaining, column.index)
            )
            self._tile(ir, numbers, each_panel, ir.at(result, column_offset), rows)

    def _tile(self, ir: Routine, numbers: str, panel: Panel, result: str, rows: int) -> None:
        width = ir.lanes * ir.size
        places = [ir.at(result, p * self.result_step + v * width) for p in range(rows) for v in range(self.vectors)]
        sums = [ir.zero] * len(places)
        if panel.adds != 0:
            before = self._masks(ir, ir.choose("eq", panel.adds, 0, 0, panel.remaining))
            sums = [ir.load(place, before[i % self.vectors]) for i, place in enumerate(places)]
        masks = [""] * self.vectors if panel.whole else self._masks(ir, panel.remaining)
        offsets = [p * self.step for p in range(rows)]
        read = () if panel.packed else masks
        sums = accumulate(ir, sums, offsets, panel.sum_loops, numbers, panel.start, read)
        for i, (total, place) in enumerate(zip(sums, places, strict=True)):
            ir.store(total, place, masks[i % self.vectors])

    def _masks(self, ir: Routine, remaining: Int64) -> list[str]:
        return [ir.below(ir.sub(remaining, v * ir.lanes)) for v in range(self.vectors)]


def copy_rows(ir: Routine, source: str, packed: str, rows: Int64, step: int, vectors: int, remaining: Int64) -> None:
    """Pack `vectors` vectors of each of `rows` rows, `step` bytes apart; columns beyond `remaining` become zeros."""
    width = ir.lanes * ir.size
    masks = [ir.below(ir.sub(remaining, v * ir.lanes)) for v in range(vectors)]
    with ir.loop(0, rows, carried=[("ptr", source), ("ptr", packed)]) as row:
        source_row, packed_row = row.carried
        for v, mask in enumerate(masks):
            ir.store(ir.load(ir.at(source_row, v * width), mask), ir.at(packed_row, v * width))
        row.carry = [ir.at(source_row, step), ir.at(packed_row, vectors * width)]


def transpose_rows(
    ir: Routine, source: str, packed: str, rows: Int64, column: int, step: int, vectors: int, remaining: Int64
) -> None:
    """Pack like `copy_rows` a matrix whose columns are `column` bytes apart, and its rows `step`.

    If rows are contiguous, square blocks are transposed in registers. Whole blocks are written, so `packed` has room
    for `rows` rounded up to the lanes.
    """
    if step == ir.size:
        with ir.loop(0, vectors) as vector, ir.loop(0, rows, ir.lanes) as row:
            _transpose_block(
                ir, source, packed, row.index, ir.sub(rows, row.index), column, vector.index, vectors, remaining
            )
        return
    width = ir.lanes * ir.size
    masks = [ir.below(ir.sub(remaining, v * ir.lanes)) or ir.first(ir.lanes) for v in range(vectors)]
    with ir.loop(0, rows, carried=[("ptr", source), ("ptr", packed)]) as row:
        source_row, packed_row = row.carried
        for v, mask in enumerate(masks):
            ir.store(ir.gather(ir.at(source_row, v * ir.lanes * column), column, mask), ir.at(packed_row, v * width))
        row.carry = [ir.at(source_row, step), ir.at(packed_row, vectors * width)]


def _transpose_block(
    ir: Routine,
    source: str,
    packed: str,
    row: Int64,
    rows: Int64,
    column: int,
    v: Int64,
    vectors: int,
    remaining: Int64,
) -> None:
    """Transpose a block, of which `rows` rows exist, of the columns of vector v: each column is loaded as a vector."""
    width, mask = ir.lanes * ir.size, ir.below(rows)
    block, first = ir.at(source, ir.mul(row, ir.size)), ir.mul(v, ir.lanes)
    read = []
    for lane in range(ir.lanes):
        # A missing column is read as the last existing one, which needs no mask. The sums of such columns are never
        # stored.
        number = ir.minimum(ir.add(first, lane), ir.sub(remaining, 1))
        read.append(ir.load(ir.at(block, ir.mul(number, column)), mask))
    target = ir.at(ir.at(packed, ir.mul(row, vectors * width)), ir.mul(v, width))
    for r, vector in enumerate(ir.transposed(read)):
        ir.store(vector, ir.at(target, r * vectors * width))
