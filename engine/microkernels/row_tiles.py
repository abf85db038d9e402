"""Rows of numbers times a panel: register tiles over the rows, and what they are added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.microkernels.register_tile import SumLoop, accumulate
from engine.microkernels.routine import Int64, Routine


class Panel(NamedTuple):
    """Vectors to multiply by, from `start` on; `sum_loops` are the steps of a sum.

    There are `left` columns that are wanted: where not `whole`, others are not written, and, unless they are `packed`,
    not read. Where `adds` is not 0, sums go on from what lies in their place: so one that is taken in several parts has
    one order, from first to last.
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
