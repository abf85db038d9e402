"""Rows of numbers times a packed panel: register tiles over the rows, and what they are added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.microkernels.register_tile import Nest, accumulate
from engine.microkernels.routine import Int64, Routine


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
        nests: Sequence[Nest],
        panel: str,
        result: str,
        left: Int64,
        adds: Int64,
        first: Int64 = 0,
        past: Int64 | None = None,
        panels: int = 1,
    ) -> None:
        """Compute the rows `first` to before `past`, by default all; both are multiples of `tile`, or the end.

        There are `panels` panels side by side, in the result, too, with `left` columns that are wanted: others are not
        written. All are multiplied by a tile of rows before the next. Where `adds` is not 0, sums go on from what lies
        in their place: so one that is taken in several parts has one order, from first to last.
        """
        past = self.rows if past is None else past
        whole = self.rows - self.rows % self.tile
        with to.loop(first, to.least(past, whole), self.tile) as row:
            self._tiles(to, numbers, nests, panel, result, left, adds, row.index, self.tile, panels)
        if whole < self.rows:
            with to.when("eq", past, self.rows):
                self._tiles(to, numbers, nests, panel, result, left, adds, whole, self.rows - whole, panels)

    def _tiles(
        self,
        to: Routine,
        numbers: str,
        nests: Sequence[Nest],
        panel: str,
        result: str,
        left: Int64,
        adds: Int64,
        row: Int64,
        rows: int,
        panels: int,
    ) -> None:
        if panels == 1:
            self._tile(to, numbers, nests, panel, result, left, adds, row, rows)
            return
        width = self.vectors * to.lanes
        with to.loop(0, to.least(left, panels * width), width) as column:
            there = to.mul(column.index, to.size)
            here, into = to.at(panel, there), to.at(result, there)
            self._tile(to, numbers, nests, here, into, to.sub(left, column.index), adds, row, rows)

    def _tile(
        self,
        to: Routine,
        numbers: str,
        nests: Sequence[Nest],
        panel: str,
        result: str,
        left: Int64,
        adds: Int64,
        row: Int64,
        rows: int,
    ) -> None:
        into = to.at(result, to.mul(row, self.result_step))
        width = to.lanes * to.size
        places = [to.at(into, p * self.result_step + v * width) for p in range(rows) for v in range(self.vectors)]
        sums = [to.zero] * len(places)
        if adds != 0:
            some = to.choose("eq", adds, 0, 0, left)
            masks = [to.below(to.sub(some, v * to.lanes)) for v in range(self.vectors)]
            sums = [to.load(place, masks[i % self.vectors]) for i, place in enumerate(places)]
        offsets = [p * self.step for p in range(rows)]
        sums = accumulate(to, sums, offsets, nests, to.at(numbers, to.mul(row, self.step)), panel)
        masks = [to.below(to.sub(left, v * to.lanes)) for v in range(self.vectors)]
        for i, (total, place) in enumerate(zip(sums, places, strict=True)):
            to.store(total, place, masks[i % self.vectors])
