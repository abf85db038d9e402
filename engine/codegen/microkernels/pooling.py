"""Pooling kernels: the maximum of each window of a plane, its index, or the mean; and the gradient of max pooling.

Taps are combined in the order of NumPy's version in `engine.ops.conv.pooling`: down each column of a window, then over
the columns. So results are the same, to the sign of a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.codegen.kernels.llvm_text import larger
from engine.codegen.microkernels.product import MatrixLayout
from engine.codegen.microkernels.recipe import KernelPhase, Recipe, TableEntryOf
from engine.codegen.microkernels.register_tile import lanes_for
from engine.codegen.microkernels.routine import Int64, Routine
from engine.codegen.microkernels.windows import (
    TAPS,
    PoolGeometry,
    WindowVector,
    at_element,
    at_plane,
    each_window,
    fold_range,
    select_lanes,
    sweep,
)
from engine.ir.run_context import aligned
from engine.ir.tensor_type import INT64

#: columns of a window, or of windows, processed at a time, with a register each
_COLUMNS: Final = 8

_X, _Y = TableEntryOf("operand", 0), TableEntryOf("result", 0)

Combine = Callable[[str, str], str]


def max_pool(geometry: PoolGeometry) -> Recipe:
    """Write y[…, i, j] = the largest element of the window at (i, j), or NaN if it has one."""

    def reduce(windows: WindowVector, y: str) -> None:
        ir = windows.reader.ir
        ir.store(_reduced(windows, lambda a, b: larger(ir.assembly, "maximum", a, b, ir.lanes)), y, windows.mask)

    return Recipe((each_window(geometry, -math.inf, geometry.itemsize, reduce, _X, _Y),))


def avg_pool(geometry: PoolGeometry) -> Recipe:
    """Write y[…, i, j] = the sum of the window at (i, j) divided by its number of taps.

    A sum starts with −0, which changes nothing; if NumPy's starts with 0, that is added in the end.
    """

    def reduce(windows: WindowVector, y: str) -> None:
        ir = windows.reader.ir
        total = _reduced(windows, ir.sum)
        if not (geometry.is_whole(0) and geometry.is_whole(1)):
            total = ir.sum(total, ir.zero)
        ir.store(ir.assembly.value(f"fdiv {ir.vector} {total}, {ir.splat(math.prod(geometry.size))}"), y, windows.mask)

    return Recipe((each_window(geometry, -0.0, geometry.itemsize, reduce, _X, _Y),))


def _reduced(windows: WindowVector, combine: Combine) -> str:
    """Combine all taps."""
    ir, start = windows.reader.ir, windows.reader.ir.splat(windows.reader.outside)
    whole, rest = divmod(windows.reader.geometry.size[1], _COLUMNS)

    def add_columns(number: Int64, so_far: list[str], count: int = _COLUMNS) -> list[str]:
        (result,) = so_far
        for column in _columns(windows, ir.mul(number, _COLUMNS), count, combine):
            result = combine(result, column)
        return [result]

    result = fold_range(ir, 0, whole, [(ir.vector, start)], add_columns)
    return (add_columns(whole, result, rest) if rest else result)[0]


def _columns(windows: WindowVector, column: Int64, count: int, combine: Combine) -> list[str]:
    """Combine the taps of each of `count` columns."""
    ir, start = windows.reader.ir, windows.reader.ir.splat(windows.reader.outside)
    masks = windows.masks(column, count)

    def add(row: Int64, so_far: list[str]) -> list[str]:
        return list(map(combine, so_far, windows.load_elements(row, column, count, masks)))

    return fold_range(ir, windows.first, windows.past, [(ir.vector, start)] * count, add, TAPS // count)


def max_pool_indices(geometry: PoolGeometry) -> Recipe:
    """Write y[…, i, j] = h · width + w, int64, of the first maximum in the window at (i, j), in row-major order.

    NaN counts as a maximum. Planes have fewer than 2³¹ elements.
    """

    def reduce(windows: WindowVector, y: str) -> None:
        ir, indices = windows.reader.ir, _Search(windows).find()
        type, wide = ir.assembly.name("int", ir.lanes), f"<{ir.lanes} x i64>"
        indices = indices if type == wide else ir.assembly.value(f"sext {type} {indices} to {wide}")
        ir.memory.store("i64", indices, y, ir.lanes, windows.mask)

    return Recipe((each_window(geometry, -math.inf, INT64.itemsize, reduce, _X, _Y),))


def first_maxima(geometry: PoolGeometry, planes: TableEntryOf, results: TableEntryOf) -> KernelPhase:
    """Find the indices of `max_pool_indices`, as integers as wide as the floats."""

    def reduce(windows: WindowVector, y: str) -> None:
        ir, search = windows.reader.ir, _Search(windows)
        ir.store(ir.assembly.value(f"bitcast {search.words} {search.find()} to {ir.vector}"), y, windows.mask)

    return each_window(geometry, -math.inf, geometry.itemsize, reduce, planes, results)


class _Search:
    """Search for the first maxima. It visits taps in row-major order and carries the maximum and its offset."""

    def __init__(self, windows: WindowVector) -> None:
        self.windows, self.ir = windows, windows.reader.ir
        self.size, self.width, self.stride = ((pool := windows.reader.geometry).size, pool.extents[1], pool.stride[1])
        self.words = self.ir.assembly.name("int", self.ir.lanes)

    def find(self) -> str:
        """Write the indices of the maxima in their planes, as integers as wide as the floats."""
        ir, windows = self.ir, self.windows
        initial = [(ir.vector, ir.splat(-math.inf)), (self.words, self._first_inside())]
        _, offset = fold_range(ir, windows.first, windows.past, initial, self._row, TAPS // self.size[1])
        corner = spread_word(ir, ir.add(ir.mul(windows.top, self.width), windows.left))
        return self._word("add", self._word("add", corner, lane_offsets(ir, self.stride)), offset)

    def _first_inside(self) -> str:
        """Write the offset of the first tap inside the plane. Padding is never the maximum, even if all else is −∞."""
        row = spread_word(self.ir, self.ir.mul(self.windows.first, self.width))
        if self.windows.unmasked:
            return row
        left = spread_word(self.ir, self.ir.sub(0, self.windows.left))
        before = self._word("sub", left, lane_offsets(self.ir, self.stride))
        is_any = self.ir.assembly.value(f"icmp sgt {self.words} {before}, zeroinitializer")
        return self._word("add", row, self._select(is_any, self.words, before, "zeroinitializer"))

    def _row(self, row: Int64, best: list[str]) -> list[str]:
        ir, (whole, rest) = self.ir, divmod(self.size[1], _COLUMNS)

        def visit_columns(number: Int64, best: list[str], count: int = _COLUMNS) -> list[str]:
            column = ir.mul(number, _COLUMNS)
            elements = self.windows.load_elements(row, column, count, self.windows.masks(column, count))
            start = ir.add(ir.mul(row, self.width), column)
            for lane, tap in enumerate(elements):
                best = self._better(best, tap, spread_word(ir, ir.add(start, lane)))
            return best

        best = fold_range(ir, 0, whole, list(zip((ir.vector, self.words), best, strict=True)), visit_columns)
        return visit_columns(whole, best, rest) if rest else best

    def _better(self, best: list[str], tap: str, offset: str) -> list[str]:
        ir, (largest, place) = self.ir, best
        # The comparison is unordered, so that NaN beats a number; the first NaN then stays.
        is_more = ir.assembly.value(f"fcmp ugt {ir.vector} {tap}, {largest}")
        is_number = ir.assembly.value(f"fcmp ord {ir.vector} {largest}, {largest}")
        is_better = ir.both(is_more, is_number)
        return [self._select(is_better, ir.vector, tap, largest), self._select(is_better, self.words, offset, place)]

    def _select(self, mask: str, type: str, a: str, b: str) -> str:
        return self.ir.assembly.value(f"select <{self.ir.lanes} x i1> {mask}, {type} {a}, {type} {b}")

    def _word(self, op: str, a: str, b: str) -> str:
        return self.ir.assembly.value(f"{op} {self.words} {a}, {b}")


def lane_offsets(ir: Routine, step: int) -> str:
    """Return a vector of integers as wide as the floats: 0, step, 2 · step, …"""
    word = ir.assembly.name("int")
    return f"<{', '.join(f'{word} {lane * step}' for lane in range(ir.lanes))}>"


def spread_word(ir: Routine, number: Int64) -> str:
    """Broadcast an integer as wide as the floats."""
    word = ir.assembly.name("int")
    if isinstance(number, int):
        return f"splat ({word} {number})"
    narrow = number if word == "i64" else ir.assembly.value(f"trunc i64 {number} to {word}")
    return ir.assembly.splat(narrow, word, ir.lanes)


# The gradient of max pooling: each element of a plane adds up the gradients of the windows whose maximum it is, along
# each column of windows, and then over the columns, in the order of the taps that read the element. Gathering instead
# of scattering, threads never write the same element. A vector begins at a window's first column, apart from padding,
# and is a whole number of windows wide, so that a lane always reads the windows at the same distances.


def max_pool_back(geometry: PoolGeometry, g: MatrixLayout) -> Recipe | None:
    """Write y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum in row-major order is x[…, h, w].

    The operands are g and x. NaN counts as a maximum. Planes have fewer than 2³¹ elements. Returns None if the stride
    of the windows is greater than the lanes of a vector.
    """
    if geometry.stride[1] > lanes_for(geometry.itemsize):
        return None
    indices = TableEntryOf("shared", 0, math.prod(geometry.batch) * math.prod(geometry.positions) * geometry.itemsize)
    search = first_maxima(geometry, TableEntryOf("operand", 1), indices)
    return Recipe((search, _GradientWriter(geometry, g, indices).phase()), shared=aligned(indices.nbytes))


@dataclass(frozen=True, eq=False, slots=True)
class _Run:
    """Neighbouring elements of a row, from `column` on; g and the maxima's indices of their planes.

    Window (`below`, `right`) is the last one that begins at or before the elements. The windows `first` to `past` rows
    further up contain them. If `unmasked`, all windows that may contain the elements exist.
    """

    g: str
    indices: str
    row: Int64
    column: Int64
    below: Int64
    right: Int64
    first: Int64
    past: Int64
    unmasked: bool


class _GradientWriter:
    """Writer of the kernel that adds up the gradients of chosen windows; `indices` are dense."""

    def __init__(self, geometry: PoolGeometry, g: MatrixLayout, indices: TableEntryOf) -> None:
        self.geometry, self.given = geometry, g
        self.ir = ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
        self.step = ir.lanes // geometry.stride[1] * geometry.stride[1]
        self.g = ir.place("operand", 0)
        self.indices = ir.place(*indices)
        self.y = ir.place("result", 0)

    def phase(self) -> KernelPhase:
        """Write all planes."""
        geometry = self.geometry
        (size, width), (stride_h, stride_w), (above, left) = geometry.size, geometry.stride, geometry.padding
        # Rows that are in the usual number of windows, if the stride divides the size: their loop has constant bounds.
        last = min(geometry.extents[0], geometry.positions[0] * stride_h - above)
        inner_rows = range(0) if size % stride_h else range(max(0, size - stride_h - above), last)
        # Vectors for which all windows that may contain them exist, so that no mask is needed.
        windows, ahead = self.step // stride_w, left // stride_w
        behind = (width - 1) // stride_w - ahead
        inner_vectors = range(
            max(0, -(-behind // windows)), (geometry.positions[1] - self.ir.lanes - ahead) // windows + 1
        )
        return self.ir.phase(
            sweep(self.ir, geometry.batch, geometry.extents, self.step, (inner_rows, inner_vectors), self._vector),
            geometry.work,
        )

    def _vector(self, plane: Int64, row: Int64, column: Int64, deep: bool, unmasked: bool) -> None:
        ir, geometry = self.ir, self.geometry
        below, rest = ir.divided(ir.add(row, geometry.padding[0]), geometry.stride[0])
        first, past = self._rows(below, rest, deep)
        right = ir.add(ir.divided(column, geometry.stride[1])[0], geometry.padding[1] // geometry.stride[1])
        g = at_plane(ir, self.g, geometry.batch, self.given, plane)
        indices = at_element(ir, self.indices, geometry.positions, ir.size, plane, 0, 0)
        total = self._total(_Run(g, indices, row, column, below, right, first, past, unmasked))
        mask = ir.below(ir.minimum(self.step, ir.sub(geometry.extents[1], column)))
        ir.store(total, at_element(ir, self.y, geometry.extents, ir.size, plane, row, column), mask)

    def _rows(self, below: Int64, rest: Int64, deep: bool) -> tuple[Int64, Int64]:
        """Write the range of window rows, counted up from `below`, that contain a row, the tap `rest` of `below`."""
        ir, size, stride = self.ir, self.geometry.size[0], self.geometry.stride[0]
        if deep:
            return 0, size // stride
        count, _ = ir.divided(ir.sub(size - 1 + stride, rest), stride)
        return ir.maximum(0, ir.sub(below, self.geometry.positions[0] - 1)), ir.minimum(count, ir.add(below, 1))

    def _total(self, run: _Run) -> str:
        """Add up all columns of windows, several at a time. Only some lanes have elements in the last column."""
        ir, across = self.ir, -(-self.geometry.size[1] // self.geometry.stride[1])
        whole = (across - 1) // _COLUMNS

        def add_columns(number: Int64, so_far: list[str], count: int = _COLUMNS) -> list[str]:
            (total,) = so_far
            for column in self._columns(run, ir.mul(number, _COLUMNS), count):
                total = ir.sum(total, column)
            return [total]

        total = fold_range(ir, 0, whole, [(ir.vector, ir.zero)], add_columns)
        return add_columns(whole, total, across - whole * _COLUMNS)[0]

    def _columns(self, run: _Run, first: Int64, count: int) -> list[str]:
        """Add up each of `count` columns of windows, from right to left."""
        ir, geometry = self.ir, self.geometry
        numbers = [ir.add(first, step) for step in range(count)]
        starts = [ir.sub(run.right, number) for number in numbers]
        masks = [
            "" if run.unmasked else ir.between(ir.sub(0, first_window), ir.sub(geometry.positions[1], first_window))
            for first_window in starts
        ]
        lanes = [self._lanes(number) for number in numbers]
        # the indices of the elements in their plane
        start = spread_word(ir, ir.add(ir.mul(run.row, geometry.extents[1]), run.column))
        element = ir.assembly.value(f"add {ir.assembly.name('int', ir.lanes)} {start}, {lane_offsets(ir, 1)}")

        def add(up: Int64, so_far: list[str]) -> list[str]:
            row = ir.sub(run.below, up)
            terms = (self._term(run, row, *column, element) for column in zip(starts, masks, lanes, strict=True))
            return [ir.sum(total, term) for total, term in zip(so_far, terms, strict=True)]

        return fold_range(ir, run.first, run.past, [(ir.vector, ir.zero)] * count, add, TAPS // count)

    def _lanes(self, number: Int64) -> list[int | None]:
        """Return for each element its lane in a vector of windows, `number` columns of windows to the left."""
        stride, size, padding = (
            self.geometry.stride[1],
            self.geometry.size[1],
            self.geometry.padding[1] % self.geometry.stride[1],
        )
        left = number * stride if isinstance(number, int) else 0  # only the last columns lack elements
        indices = (divmod(padding + lane, stride) for lane in range(self.ir.lanes))
        return [window if tap + left < size else None for window, tap in indices]

    def _term(self, run: _Run, row: Int64, start: Int64, mask: str, lanes: list[int | None], element: str) -> str:
        ir, geometry, given = self.ir, self.geometry, self.given
        place = ir.at(run.g, ir.add(ir.mul(row, given.row), ir.mul(start, given.column)))
        term = select_lanes(ir, ir.load_row(place, given.column, mask), lanes)
        chosen = ir.load(at_element(ir, run.indices, geometry.positions, ir.size, 0, row, start), mask)
        words = ir.assembly.name("int", ir.lanes)
        chosen = ir.assembly.value(f"bitcast {ir.vector} {select_lanes(ir, chosen, lanes)} to {words}")
        return ir.masked(term, ir.assembly.value(f"icmp eq {words} {chosen}, {element}"))
