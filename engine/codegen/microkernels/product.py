"""Matrix products: tiles of rows times panels of columns, which are packed unless their layout is good already.

c[b, i, j] = Σₖ a[b, i, k] · b[b, k, j]. Each element is summed in the order of k, whatever the tiles are.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.register_tile import (
    Panel,
    RowTiles,
    SumLoop,
    TileShape,
    copy_rows,
    lanes_for,
    rows_of_item,
    tile_shape,
    transpose_rows,
)
from engine.codegen.microkernels.routine import Int64, Routine
from engine.ir.run_context import aligned

#: largest panel, in bytes, that is read in place: larger ones are spread over too many pages
IN_PLACE: Final = 1 << 16
#: steps of the sum for which a panel is packed at a time, so that it stays in the cache
DEPTH: Final = 1024
#: limit of the bytes of a that these steps span, since each may touch another page; and the least number of steps
REACH: Final = 1 << 21
SHALLOW: Final = 128
#: multiply-adds from which BLAS is faster if one side is a vector, so that no number in a register is reused: for a row
#: times a matrix with contiguous columns, and otherwise
ROW: Final = 1 << 14
VECTOR: Final = 1 << 9


class MatrixLayout(NamedTuple):
    """Layout of an operand or the result: bytes to the next row, the next column, and along each batch axis."""

    row: int
    column: int
    batch: tuple[int, ...]


class Product(NamedTuple):
    """A product of matrices, repeated along the extents `batch`."""

    dtype: str
    itemsize: int
    batch: tuple[int, ...]
    rows: int
    inner: int
    columns: int
    a: MatrixLayout
    b: MatrixLayout
    c: MatrixLayout


def product_kernel(geometry: Product) -> Recipe:
    """Write the kernel of a product. The columns of c are contiguous."""
    return _Writer(geometry).recipe()


def prefers_blas(geometry: Product) -> bool:
    """Whether BLAS is faster than the kernel, as measured in docs/adr/0033-kernels-for-shapes.md."""
    if min(geometry.rows, geometry.columns) > 1:
        return False
    limit = ROW if geometry.rows == 1 and geometry.b.column == geometry.itemsize else VECTOR
    return geometry.rows * geometry.inner * geometry.columns > limit


class _Writer:
    def __init__(self, geometry: Product) -> None:
        self.geometry = geometry
        self.ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
        self.tile: TileShape = tile_shape(geometry.rows, geometry.columns, self.ir.lanes)
        self.tiles = RowTiles(geometry.rows, geometry.a.row, geometry.c.row, *self.tile)
        self.width = self.tile.vectors * self.ir.lanes
        self.panels = -(-geometry.columns // self.width)
        self.chunk = rows_of_item(geometry.rows, self.tile.rows, math.prod(geometry.batch) * self.panels)
        self.chunks = -(-geometry.rows // self.chunk)
        # A panel is read in place if few rows reuse it, or if it has few pages and no step needs a mask.
        few, whole = geometry.rows <= 2 * self.tile.rows, geometry.columns % self.width == 0
        is_readable_in_place = few or (whole and geometry.inner * abs(geometry.b.row) <= IN_PLACE)
        self.packs = geometry.b.column != geometry.itemsize or not is_readable_in_place
        self.depth = geometry.inner
        if self.packs:
            # Steps along a strided row of a touch a page each: limit how many pages a block of steps needs.
            within_reach = REACH // max(1, abs(geometry.a.column))
            self.depth = min(geometry.inner, DEPTH, max(SHALLOW, within_reach))

    def recipe(self) -> Recipe:
        geometry, items = self.geometry, math.prod(self.geometry.batch) * self.panels * self.chunks
        with self.ir.loop("%first", "%past") as item:
            self._item(item.index)
        flops = 2 * math.prod(geometry.batch) * geometry.rows * geometry.inner * geometry.columns
        return Recipe((self.ir.phase(items, flops),), own=aligned(self.panel_bytes) if self.packs else 0)

    @property
    def panel_bytes(self) -> int:
        """Bytes of a packed panel; its rows are rounded up to the blocks of lanes in which they are transposed."""
        return -(-self.depth // self.ir.lanes) * self.ir.lanes * self.width * self.geometry.itemsize

    def _item(self, item: Int64) -> None:
        ir, geometry = self.ir, self.geometry
        batch_panel, chunk = ir.divided(item, self.chunks)
        batch, panel = ir.divided(batch_panel, self.panels)
        a, b, c = (
            ir.moved(pointer, ir.unravelled(batch, geometry.batch), layout.batch)
            for pointer, layout in (
                (ir.place("operand", 0), geometry.a),
                (ir.place("operand", 1), geometry.b),
                (ir.place("result", 0), geometry.c),
            )
        )
        first = ir.mul(panel, self.width)
        b, c = ir.at(b, ir.mul(first, geometry.b.column)), ir.at(c, ir.mul(first, geometry.c.column))
        remaining = ir.sub(geometry.columns, first)
        with ir.loop(0, geometry.inner, self.depth) as k:
            steps: Int64 = geometry.inner
            if self.depth < geometry.inner:
                steps = ir.minimum(self.depth, ir.sub(geometry.inner, k.index))
            numbers, vectors = ir.at(a, ir.mul(k.index, geometry.a.column)), ir.at(b, ir.mul(k.index, geometry.b.row))
            step = geometry.b.row
            if self.packs:
                vectors, step = self._packed(vectors, steps, remaining), self.width * geometry.itemsize
            sum_loop = SumLoop(steps, geometry.a.column, step)
            # From the second block of steps on, sums continue from the values in c.
            adds = k.index if self.depth < geometry.inner else 0
            whole = geometry.columns % self.width == 0
            begin = ir.mul(chunk, self.chunk)
            past = ir.minimum(ir.add(begin, self.chunk), geometry.rows)
            self.tiles.multiply(
                ir, numbers, Panel(vectors, [sum_loop], remaining, adds, whole, self.packs), c, begin, past
            )

    def _packed(self, b: str, steps: Int64, remaining: Int64) -> str:
        """Pack the panel into the thread's own memory, with zeros for missing columns."""
        geometry, own = self.geometry, self.ir.place("own", 0, self.panel_bytes)
        if geometry.b.column == geometry.itemsize:
            copy_rows(self.ir, b, own, steps, geometry.b.row, self.tile.vectors, remaining)
        else:
            transpose_rows(self.ir, b, own, steps, geometry.b.column, geometry.b.row, self.tile.vectors, remaining)
        return own
