"""Pools and the gradient of max pooling: of each window of a plane the maximum, where that lies, or the mean.

Taps are combined as `engine.ops.conv.pooling` does with NumPy: down each column of a window, then over the columns. So
results are the same, to the sign of a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.codegen.kernels.llvm_text import larger
from engine.codegen.microkernels.product import Matrices
from engine.codegen.microkernels.recipe import KernelPhase, Recipe, TableEntryOf
from engine.codegen.microkernels.register_tile import lanes_for
from engine.codegen.microkernels.routine import Int64, Routine
from engine.codegen.microkernels.windows import (
    TAPS,
    PoolGeometry,
    WindowVector,
    arranged,
    at_element,
    at_plane,
    each_window,
    repeated,
    sweep,
)
from engine.ir.run_context import aligned
from engine.ir.tensor_type import INT64

#: columns of a window, or of windows, at once, each with a register
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
    """Combine all taps."""
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
    """Combine the taps of each of so many columns."""
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
        to, words = windows.reader.to, _Search(windows).found()
        type, wide = to.to.name("int", to.lanes), f"<{to.lanes} x i64>"
        words = words if type == wide else to.to.value(f"sext {type} {words} to {wide}")
        to.memory.store("i64", words, y, to.lanes, windows.here)

    return Recipe((each_window(of, -math.inf, INT64.itemsize, reduce, _X, _Y),))


def first_maxima(of: PoolGeometry, planes: TableEntryOf, results: TableEntryOf) -> KernelPhase:
    """Search as `max_pool_indices`, for integers as wide as the floats."""

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
        """Write their places in their planes: integers as wide as the floats."""
        to, windows = self.to, self.windows
        nothing = [(to.vector, to.splat(-math.inf)), (self.words, self._first_inside())]
        _, found = repeated(to, windows.first, windows.past, nothing, self._row, TAPS // self.size[1])
        corner = spread_word(to, to.add(to.mul(windows.top, self.width), windows.left))
        return self._word("add", self._word("add", corner, numbers_apart(to, self.stride)), found)

    def _first_inside(self) -> str:
        """Write the place of the first tap that is inside: padding is no maximum, not even of a plane of −∞."""
        row = spread_word(self.to, self.to.mul(self.windows.first, self.width))
        if self.windows.wide:
            return row
        left = spread_word(self.to, self.to.sub(0, self.windows.left))
        before = self._word("sub", left, numbers_apart(self.to, self.stride))
        is_any = self.to.to.value(f"icmp sgt {self.words} {before}, zeroinitializer")
        return self._word("add", row, self._select(is_any, self.words, before, "zeroinitializer"))

    def _row(self, row: Int64, best: list[str]) -> list[str]:
        to, (whole, rest) = self.to, divmod(self.size[1], _COLUMNS)

        def some(number: Int64, best: list[str], count: int = _COLUMNS) -> list[str]:
            column = to.mul(number, _COLUMNS)
            seen = self.windows.seen(row, column, count, self.windows.masks(column, count))
            start = to.add(to.mul(row, self.width), column)
            for more, tap in enumerate(seen):
                best = self._better(best, tap, spread_word(to, to.add(start, more)))
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


def numbers_apart(to: Routine, step: int) -> str:
    """Return a vector of integers as wide as the floats: 0, step, 2 step, …"""
    word = to.to.name("int")
    return f"<{', '.join(f'{word} {lane * step}' for lane in range(to.lanes))}>"


def spread_word(to: Routine, number: Int64) -> str:
    """Write a vector of one integer as wide as the floats."""
    word = to.to.name("int")
    if isinstance(number, int):
        return f"splat ({word} {number})"
    narrow = number if word == "i64" else to.to.value(f"trunc i64 {number} to {word}")
    return to.to.splat(narrow, word, to.lanes)


# The gradient of max pooling: each element of a plane adds up the gradients of the windows whose maximum it is, along
# each column of windows, then over the columns, in the order of the taps at which they have the element. A vector
# begins where a window does, but for the padding, and is as many windows wide as fit: so each lane always looks at the
# same windows around it.


def max_pool_back(of: PoolGeometry, g: Matrices) -> Recipe | None:
    """y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first maximum, in row-major order.

    Operands are g and x; a NaN is a maximum. Planes have less than 2³¹ elements. None if windows are further apart than
    a vector is wide.
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
    """Writer of the kernel that adds up the chosen gradients; `places` lie densely."""

    def __init__(self, of: PoolGeometry, g: Matrices, places: TableEntryOf) -> None:
        self.of, self.given = of, g
        self.to = to = Routine(of.dtype, lanes_for(of.itemsize))
        self.step = to.lanes // of.stride[1] * of.stride[1]
        self.g = to.place("operand", 0)
        self.places = to.place(*places)
        self.y = to.place("result", 0)

    def phase(self) -> KernelPhase:
        """Write all planes."""
        of = self.of
        (size, width), (stride, apart), (above, left) = of.size, of.stride, of.padding
        # the rows that have as many windows above each other as most others, if there are any
        last = min(of.extents[0], of.positions[0] * stride - above)
        deep = range(0) if size % stride else range(max(0, size - stride - above), last)
        # the vectors around which there are so many windows that no mask is needed
        windows, ahead = self.step // apart, left // apart
        behind = (width - 1) // apart - ahead
        wide = range(max(0, -(-behind // windows)), (of.positions[1] - self.to.lanes - ahead) // windows + 1)
        return self.to.phase(sweep(self.to, of.batch, of.extents, self.step, (deep, wide), self._vector), of.work)

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
        """Write the range of windows, upwards from `below`, that have a row, which is the tap `rest` of `below`."""
        to, size, stride = self.to, self.of.size[0], self.of.stride[0]
        if deep:
            return 0, size // stride
        count, _ = to.divided(to.sub(size - 1 + stride, rest), stride)
        return to.most(0, to.sub(below, self.of.positions[0] - 1)), to.least(count, to.add(below, 1))

    def _total(self, run: _Run) -> str:
        """Add up all columns of windows, some at once; the last of them may have elements of only some lanes."""
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
        """Add up each of so many columns of windows, each to the left of the one before."""
        to, of = self.to, self.of
        numbers = [to.add(first, more) for more in range(count)]
        starts = [to.sub(run.right, number) for number in numbers]
        masks = ["" if run.wide else to.between(to.sub(0, at), to.sub(of.positions[1], at)) for at in starts]
        lanes = [self._lanes(number) for number in numbers]
        # the places of the elements in their plane
        start = spread_word(to, to.add(to.mul(run.row, of.extents[1]), run.column))
        element = to.to.value(f"add {to.to.name('int', to.lanes)} {start}, {numbers_apart(to, 1)}")

        def add(up: Int64, so_far: list[str]) -> list[str]:
            row = to.sub(run.below, up)
            terms = (self._term(run, row, *which, element) for which in zip(starts, masks, lanes, strict=True))
            return [to.sum(total, term) for total, term in zip(so_far, terms, strict=True)]

        return repeated(to, run.first, run.past, [(to.vector, to.zero)] * count, add, TAPS // count)

    def _lanes(self, number: Int64) -> list[int | None]:
        """List for each element its lane in a vector of windows, so many columns of windows to the left."""
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
