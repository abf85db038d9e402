"""The way back of max pooling: each element of a plane adds up what the windows that it is in have for it.

They are added as `engine.oplib.pooling` does with NumPy: along each column of windows, then over the
columns, in the order of the taps at which they have the element. A vector begins where a window does, but
for the padding, and is as many windows wide as fit: so each lane always looks at the same of those around.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from engine.graph.alignment import aligned
from engine.microkernels.planes import at_element, at_plane, repeated, sweep
from engine.microkernels.pooling import first_maxima, numbers_apart, spread_word
from engine.microkernels.product import Matrices
from engine.microkernels.recipe import KernelPhase, Recipe, TableEntryOf
from engine.microkernels.register_tile import lanes_for
from engine.microkernels.routine import Int64, Routine
from engine.microkernels.shuffles import arranged
from engine.microkernels.windows import TAPS, PoolGeometry

#: columns of windows at once, each with a register
_COLUMNS: Final = 8


def max_pool_back(of: PoolGeometry, g: Matrices) -> Recipe | None:
    """y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first maximum, in row-major order.

    Operands are g and x; a NaN is a maximum. Planes have less than 2³¹ elements. None where windows are further apart
    than a vector is wide.
    """
    if of.stride[1] > lanes_for(of.itemsize):
        return None
    places = TableEntryOf("shared", 0, math.prod(of.batch) * math.prod(of.positions) * of.itemsize)
    search = first_maxima(of, TableEntryOf("operand", 1), places)
    return Recipe((search, _Giving(of, g, places).phase()), shared=aligned(places.nbytes))


@dataclass(frozen=True, eq=False, slots=True)
class _Run:
    """Elements side by side, from `column` of a row on; g and places of their planes.

    Window `below`, `right` is the last that begins where they do, or before; `first` to `past` are how many further up
    the windows are that have them. With `wide`, a vector of windows can be read from each.
    """

    g: str
    places: str
    row: Int64
    column: Int64
    below: Int64
    right: Int64
    first: Int64
    past: Int64
    wide: bool


class _Giving:
    """The kernel that adds up what is chosen; `places` lie densely."""

    def __init__(self, of: PoolGeometry, g: Matrices, places: TableEntryOf) -> None:
        self.of, self.given = of, g
        self.to = to = Routine(of.dtype, lanes_for(of.itemsize))
        self.step = to.lanes // of.stride[1] * of.stride[1]
        self.g = to.place("operand", 0)
        self.places = to.place(*places)
        self.y = to.place("result", 0)

    def phase(self) -> KernelPhase:
        """All planes."""
        of = self.of
        items = sweep(self.to, of.batch, of.extents, self.step, (self._deep(), self._wide()), self._vector)
        return self.to.phase(items, of.work)

    def _deep(self) -> range:
        """The rows of which each has as many windows above each other as the others, if there are such."""
        (size, _), (stride, _), padding = self.of.size, self.of.stride, self.of.padding[0]
        if size % stride:
            return range(0)
        return range(max(0, size - stride - padding), min(self.of.extents[0], self.of.positions[0] * stride - padding))

    def _wide(self) -> range:
        """The vectors around which there are so many windows that no mask is needed."""
        of, windows = self.of, self.step // self.of.stride[1]
        ahead = of.padding[1] // of.stride[1]
        behind = (of.size[1] - 1) // of.stride[1] - ahead
        return range(max(0, -(-behind // windows)), (of.positions[1] - self.to.lanes - ahead) // windows + 1)

    def _vector(self, plane: Int64, row: Int64, column: Int64, deep: bool, wide: bool) -> None:
        to, of = self.to, self.of
        below, rest = to.divided(to.add(row, of.padding[0]), of.stride[0])
        first, past = self._rows(below, rest, deep)
        right = to.add(to.divided(column, of.stride[1])[0], of.padding[1] // of.stride[1])
        g = at_plane(to, self.g, of.batch, self.given, plane)
        places = at_element(to, self.places, of.positions, to.size, plane, 0, 0)
        total = self._total(_Run(g, places, row, column, below, right, first, past, wide))
        here = to.below(to.least(self.step, to.sub(of.extents[1], column)))
        to.store(total, at_element(to, self.y, of.extents, to.size, plane, row, column), here)

    def _rows(self, below: Int64, rest: Int64, deep: bool) -> tuple[Int64, Int64]:
        """How far up the windows are that have a row, which is the tap `rest` of window `below`."""
        to, size, stride = self.to, self.of.size[0], self.of.stride[0]
        if deep:
            return 0, size // stride
        count, _ = to.divided(to.sub(size - 1 + stride, rest), stride)
        return to.most(0, to.sub(below, self.of.positions[0] - 1)), to.least(count, to.add(below, 1))

    def _total(self, run: _Run) -> str:
        """The sum over all columns of windows, some at once; the last of them may have only some lanes' elements."""
        to, across = self.to, -(-self.of.size[1] // self.of.stride[1])
        whole = (across - 1) // _COLUMNS

        def some(number: Int64, so_far: list[str], count: int = _COLUMNS) -> list[str]:
            (total,) = so_far
            for column in self._columns(run, to.mul(number, _COLUMNS), count):
                total = to.sum(total, column)
            return [total]

        found = repeated(to, 0, whole, [(to.vector, to.zero)], some)
        return some(whole, found, across - whole * _COLUMNS)[0]

    def _columns(self, run: _Run, first: Int64, count: int) -> list[str]:
        """The sums over so many columns of windows, each to the left of the one before."""
        to, of = self.to, self.of
        numbers = [to.add(first, more) for more in range(count)]
        starts = [to.sub(run.right, number) for number in numbers]
        masks = ["" if run.wide else to.between(to.sub(0, at), to.sub(of.positions[1], at)) for at in starts]
        lanes = [self._lanes(number) for number in numbers]
        element = self._element(run)

        def add(up: Int64, so_far: list[str]) -> list[str]:
            row = to.sub(run.below, up)
            terms = (self._term(run, row, *which, element) for which in zip(starts, masks, lanes, strict=True))
            return [to.sum(total, term) for total, term in zip(so_far, terms, strict=True)]

        return repeated(to, run.first, run.past, [(to.vector, to.zero)] * count, add, TAPS // count)

    def _lanes(self, number: Int64) -> list[int | None]:
        """Which lane of a vector of windows each element is in, so many columns of windows to the left."""
        stride, size, padding = self.of.stride[1], self.of.size[1], self.of.padding[1] % self.of.stride[1]
        left = number * stride if isinstance(number, int) else 0  # only the last ones do not have all
        places = (divmod(padding + lane, stride) for lane in range(self.to.lanes))
        return [window if tap + left < size else None for window, tap in places]

    def _term(self, run: _Run, row: Int64, start: Int64, mask: str, lanes: list[int | None], element: str) -> str:
        to, of, given = self.to, self.of, self.given
        place = to.at(run.g, to.add(to.mul(row, given.row), to.mul(start, given.column)))
        term = arranged(to, to.load_row(place, given.column, mask), lanes)
        chosen = to.load(at_element(to, run.places, of.positions, to.size, 0, row, start), mask)
        words = to.to.name("int", to.lanes)
        chosen = to.to.value(f"bitcast {to.vector} {arranged(to, chosen, lanes)} to {words}")
        return to.kept(term, to.to.value(f"icmp eq {words} {chosen}, {element}"))

    def _element(self, run: _Run) -> str:
        """Where the elements lie in their plane."""
        to = self.to
        start = spread_word(to, to.add(to.mul(run.row, self.of.extents[1]), run.column))
        return to.to.value(f"add {to.to.name('int', to.lanes)} {start}, {numbers_apart(to, 1)}")
