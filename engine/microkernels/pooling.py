"""Pools and the gradient of max pooling: of each window of a plane the maximum, where that lies, or the mean.

Taps are combined as `engine.ops.pooling` does with NumPy: down each column of a window, then over the columns. So
results are the same, to the sign of a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from engine.graph.tensor_type import INT64
from engine.loops.llvm_instructions import larger
from engine.microkernels.planes import repeated
from engine.microkernels.recipe import KernelPhase, Recipe, TableEntryOf
from engine.microkernels.routine import Int64, Routine
from engine.microkernels.windows import TAPS, PoolGeometry, WindowVector, each_window

#: columns of a window at once, each with a register
_COLUMNS: Final = 8

_X, _Y = TableEntryOf("operand", 0), TableEntryOf("result", 0)

Combine = Callable[[str, str], str]


def max_pool(of: PoolGeometry) -> Recipe:
    """y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one."""

    def reduce(windows: WindowVector, y: str) -> None:
        to = windows.reader.to
        to.store(_reduced(windows, lambda a, b: larger(to.to, "maximum", a, b, to.lanes)), y, windows.here)

    return Recipe((each_window(of, -math.inf, of.itemsize, reduce, _X, _Y),))


def avg_pool(of: PoolGeometry) -> Recipe:
    """y[…, i, j] = the sum of the window at (i, j), divided by the number of its taps.

    A sum begins with −0, which changes nothing; where NumPy begins with 0, that is added in the end.
    """

    def reduce(windows: WindowVector, y: str) -> None:
        to = windows.reader.to
        total = _reduced(windows, to.sum)
        if not (of.is_whole(0) and of.is_whole(1)):
            total = to.sum(total, to.zero)
        to.store(to.to.value(f"fdiv {to.vector} {total}, {to.splat(math.prod(of.size))}"), y, windows.here)

    return Recipe((each_window(of, -0.0, of.itemsize, reduce, _X, _Y),))


def _reduced(windows: WindowVector, combine: Combine) -> str:
    """All taps combined."""
    to, start = windows.reader.to, windows.reader.to.splat(windows.reader.outside)
    whole, rest = divmod(windows.reader.of.size[1], _COLUMNS)

    def some(number: Int64, so_far: list[str], count: int = _COLUMNS) -> list[str]:
        (found,) = so_far
        for column in _columns(windows, to.mul(number, _COLUMNS), count, combine):
            found = combine(found, column)
        return [found]

    found = repeated(to, 0, whole, [(to.vector, start)], some)
    return (some(whole, found, rest) if rest else found)[0]


def _columns(windows: WindowVector, column: Int64, count: int, combine: Combine) -> list[str]:
    """Of so many columns, the taps of each one combined."""
    to, start = windows.reader.to, windows.reader.to.splat(windows.reader.outside)
    masks = windows.masks(column, count)

    def add(row: Int64, so_far: list[str]) -> list[str]:
        return list(map(combine, so_far, windows.seen(row, column, count, masks)))

    return repeated(to, windows.first, windows.past, [(to.vector, start)] * count, add, TAPS // count)


def max_pool_indices(of: PoolGeometry) -> Recipe:
    """y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j) lies: h · width + w, int64.

    A NaN is a maximum. Planes have less than 2³¹ elements.
    """

    def reduce(windows: WindowVector, y: str) -> None:
        _store_wide(windows.reader.to, _Search(windows).found(), y, windows.here)

    return Recipe((each_window(of, -math.inf, INT64.itemsize, reduce, _X, _Y),))


def first_maxima(of: PoolGeometry, planes: TableEntryOf, results: TableEntryOf) -> KernelPhase:
    """As max_pool_indices, but integers as wide as the floats."""

    def reduce(windows: WindowVector, y: str) -> None:
        to, found = windows.reader.to, _Search(windows)
        to.store(to.to.value(f"bitcast {found.words} {found.found()} to {to.vector}"), y, windows.here)

    return each_window(of, -math.inf, of.itemsize, reduce, planes, results)


class _Search:
    """Search for the first maxima: taps in row-major order, the largest so far, and its place from the first tap."""

    def __init__(self, windows: WindowVector) -> None:
        self.windows, self.to = windows, windows.reader.to
        self.size, self.width, self.stride = (of := windows.reader.of).size, of.extents[1], of.stride[1]
        self.words = self.to.to.name("int", self.to.lanes)

    def found(self) -> str:
        """Where they lie in their planes: integers as wide as the floats."""
        to, windows = self.to, self.windows
        nothing = [(to.vector, to.splat(-math.inf)), (self.words, self._first_inside())]
        _, found = repeated(to, windows.first, windows.past, nothing, self._row, TAPS // self.size[1])
        corner = self._spread(to.add(to.mul(windows.top, self.width), windows.left))
        return self._word("add", self._word("add", corner, self._numbers()), found)

    def _first_inside(self) -> str:
        """Where the first tap that is inside lies: no padding is a maximum, not even of what is −∞."""
        row = self._spread(self.to.mul(self.windows.first, self.width))
        if self.windows.wide:
            return row
        before = self._word("sub", self._spread(self.to.sub(0, self.windows.left)), self._numbers())
        is_any = self.to.to.value(f"icmp sgt {self.words} {before}, zeroinitializer")
        return self._word("add", row, self._select(is_any, self.words, before, "zeroinitializer"))

    def _row(self, row: Int64, best: list[str]) -> list[str]:
        to, (whole, rest) = self.to, divmod(self.size[1], _COLUMNS)

        def some(number: Int64, best: list[str], count: int = _COLUMNS) -> list[str]:
            column = to.mul(number, _COLUMNS)
            seen = self.windows.seen(row, column, count, self.windows.masks(column, count))
            start = to.add(to.mul(row, self.width), column)
            for more, tap in enumerate(seen):
                best = self._better(best, tap, self._spread(to.add(start, more)))
            return best

        best = repeated(to, 0, whole, list(zip((to.vector, self.words), best, strict=True)), some)
        return some(whole, best, rest) if rest else best

    def _better(self, best: list[str], tap: str, here: str) -> list[str]:
        to, (largest, place) = self.to, best
        is_more = to.to.value(f"fcmp ugt {to.vector} {tap}, {largest}")
        is_number = to.to.value(f"fcmp ord {to.vector} {largest}, {largest}")
        is_better = to.both(is_more, is_number)
        return [self._select(is_better, to.vector, tap, largest), self._select(is_better, self.words, here, place)]

    def _select(self, mask: str, type: str, a: str, b: str) -> str:
        return self.to.to.value(f"select <{self.to.lanes} x i1> {mask}, {type} {a}, {type} {b}")

    def _word(self, op: str, a: str, b: str) -> str:
        return self.to.to.value(f"{op} {self.words} {a}, {b}")

    def _numbers(self) -> str:
        """How far each window is from the first."""
        return numbers_apart(self.to, self.stride)

    def _spread(self, number: Int64) -> str:
        return spread_word(self.to, number)


def numbers_apart(to: Routine, step: int) -> str:
    """A vector of integers as wide as the floats: 0, step, 2 step, …"""
    word = to.to.name("int")
    return f"<{', '.join(f'{word} {lane * step}' for lane in range(to.lanes))}>"


def spread_word(to: Routine, number: Int64) -> str:
    """A vector of one integer as wide as the floats."""
    word = to.to.name("int")
    if isinstance(number, int):
        return f"splat ({word} {number})"
    narrow = number if word == "i64" else to.to.value(f"trunc i64 {number} to {word}")
    return to.to.splat(narrow, word, to.lanes)


def _store_wide(to: Routine, words: str, pointer: str, mask: str) -> None:
    """Write a vector of integers as int64."""
    type, wide = to.to.name("int", to.lanes), f"<{to.lanes} x i64>"
    if type != wide:
        words = to.to.value(f"sext {type} {words} to {wide}")
    to.memory.store("i64", words, pointer, to.lanes, mask)
