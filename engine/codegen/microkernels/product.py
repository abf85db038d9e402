"""Matrix products: panels of columns, packed where they do not lie well, times tiles of rows.

c[b, i, j] = Σₖ a[b, i, k] · b[b, k, j]. Each element is summed up in the order of k, whatever the tiles are.
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

#: bytes of a panel that is read in place: larger ones lie on too many pages
IN_PLACE: Final = 1 << 16
#: steps of a sum that are taken before the next panel is packed: so long it stays in the cache
DEPTH: Final = 1024
#: bytes of a that they reach over, at most, and how many they are all the same: each may lie on a page of its own
REACH: Final = 1 << 21
SHALLOW: Final = 128
#: multiply-adds from which BLAS is quicker where a side is a vector, and no number in a register serves twice: for a
#: row times a matrix whose columns lie side by side, and else
ROW: Final = 1 << 14
VECTOR: Final = 1 << 9


class Matrices(NamedTuple):
    """An operand or the result: bytes to the next row and column, and to the next along each batch axis."""

    row: int
    column: int
    batch: tuple[int, ...]


class Product(NamedTuple):
    """A product of matrices, many of them along the extents `batch`."""

    dtype: str
    itemsize: int
    batch: tuple[int, ...]
    rows: int
    inner: int
    columns: int
    a: Matrices
    b: Matrices
    c: Matrices


def product(of: Product) -> Recipe:
    """Write the kernel of a product. The columns of c lie side by side."""
    return _Writer(of).recipe()


def is_for_blas(of: Product) -> bool:
    """Whether BLAS is quicker than the kernel, as docs/adr/0033-kernels-for-shapes.md measures."""
    if min(of.rows, of.columns) > 1:
        return False
    most = ROW if of.rows == 1 and of.b.column == of.itemsize else VECTOR
    return of.rows * of.inner * of.columns > most


class _Writer:
    def __init__(self, of: Product) -> None:
        self.of = of
        self.to = Routine(of.dtype, lanes_for(of.itemsize))
        self.tile: TileShape = tile_shape(of.rows, of.columns, self.to.lanes)
        self.tiles = RowTiles(of.rows, of.a.row, of.c.row, *self.tile)
        self.width = self.tile.vectors * self.to.lanes
        self.panels = -(-of.columns // self.width)
        self.chunk = rows_of_item(of.rows, self.tile.rows, math.prod(of.batch) * self.panels)
        self.chunks = -(-of.rows // self.chunk)
        # A panel is read in place by few rows, or from few pages if no vector is cut off in each step.
        few, whole = of.rows <= 2 * self.tile.rows, of.columns % self.width == 0
        lies_well = few or (whole and of.inner * abs(of.b.row) <= IN_PLACE)
        self.packs = of.b.column != of.itemsize or not lies_well
        self.depth = of.inner
        if self.packs:
            within_reach = REACH // max(1, abs(of.a.column))
            self.depth = min(of.inner, DEPTH, max(SHALLOW, within_reach))

    def recipe(self) -> Recipe:
        of, items = self.of, math.prod(self.of.batch) * self.panels * self.chunks
        with self.to.loop("%first", "%past") as item:
            self._item(item.index)
        flops = 2 * math.prod(of.batch) * of.rows * of.inner * of.columns
        return Recipe((self.to.phase(items, flops),), own=aligned(self.panel_bytes) if self.packs else 0)

    @property
    def panel_bytes(self) -> int:
        """Bytes of a packed panel, whose rows are turned in blocks of as many as there are lanes."""
        return -(-self.depth // self.to.lanes) * self.to.lanes * self.width * self.of.itemsize

    def _item(self, item: Int64) -> None:
        to, of = self.to, self.of
        batch_panel, chunk = to.divided(item, self.chunks)
        batch, panel = to.divided(batch_panel, self.panels)
        a, b, c = (
            to.moved(pointer, to.unravelled(batch, of.batch), lying.batch)
            for pointer, lying in (
                (to.place("operand", 0), of.a),
                (to.place("operand", 1), of.b),
                (to.place("result", 0), of.c),
            )
        )
        first = to.mul(panel, self.width)
        b, c = to.at(b, to.mul(first, of.b.column)), to.at(c, to.mul(first, of.c.column))
        left = to.sub(of.columns, first)
        with to.loop(0, of.inner, self.depth) as k:
            steps: Int64 = of.inner
            if self.depth < of.inner:
                steps = to.least(self.depth, to.sub(of.inner, k.index))
            numbers, vectors = to.at(a, to.mul(k.index, of.a.column)), to.at(b, to.mul(k.index, of.b.row))
            step = of.b.row
            if self.packs:
                vectors, step = self._packed(vectors, steps, left), self.width * of.itemsize
            sum_loop = SumLoop(steps, of.a.column, step)
            adds = k.index if self.depth < of.inner else 0
            whole = of.columns % self.width == 0
            begin = to.mul(chunk, self.chunk)
            past = to.least(to.add(begin, self.chunk), of.rows)
            self.tiles.multiply(to, numbers, Panel(vectors, [sum_loop], left, adds, whole, self.packs), c, begin, past)

    def _packed(self, b: str, steps: Int64, left: Int64) -> str:
        """Pack the panel in memory of the thread's own, with zeros where there are no columns."""
        of, own = self.of, self.to.place("own", 0, self.panel_bytes)
        if of.b.column == of.itemsize:
            copy_rows(self.to, b, own, steps, of.b.row, self.tile.vectors, left)
        else:
            transpose_rows(self.to, b, own, steps, of.b.column, of.b.row, self.tile.vectors, left)
        return own
