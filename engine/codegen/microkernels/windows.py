"""Windows over planes: vectors of neighbouring windows, and the elements that they read at each tap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from engine.codegen.microkernels.product import MatrixLayout
from engine.codegen.microkernels.recipe import KernelPhase, TableEntryOf
from engine.codegen.microkernels.register_tile import lanes_for
from engine.codegen.microkernels.routine import MOST_LANES, Int64, Routine, offsets_fit

#: number of planes from which each is an item; of fewer planes, each row is an item, so that all threads have work
PLANES: Final = 8
#: largest number of vectors in a row for which the loop is unrolled, so that masks are constants
_WRITTEN_OUT: Final = 4
#: largest stride of windows for which whole vectors are loaded and deinterleaved; larger strides are gathered
MOST_DEINTERLEAVED: Final = 4
#: largest number of taps whose loop is unrolled
TAPS: Final = 16

Carried = list[str]


def sweep(
    ir: Routine,
    batch: Sequence[int],
    extents: tuple[int, int],
    step: int,
    inner: tuple[range, range],
    write_vector: Callable[[Int64, Int64, Int64, bool, bool], None],
) -> int:
    """Let `write_vector` write planes [*batch, *extents] in vectors of `step` columns; return the number of items.

    Its arguments are the numbers of the plane, the row and the first column, and whether the row and the vector are
    known to be in the `inner` ranges, where fewer checks are needed.
    """
    planes, (rows, columns) = math.prod(batch), extents
    parts = 1 if planes >= PLANES else rows
    with ir.loop("%first", "%past") as item:
        plane, part = ir.divided(item.index, parts)
        start = ir.mul(part, rows // parts)
        stop = ir.add(start, rows // parts)
        # Inner windows need no masks. Loops of their own keep the checks out of their code.
        for rows_part, is_inner in _segments(rows, inner[0]):
            with ir.loop(ir.maximum(start, rows_part.start), ir.minimum(stop, rows_part.stop)) as row:
                for vectors, are_inner in _segments(-(-columns // step), inner[1]):
                    for column in _columns(ir, vectors, step):
                        write_vector(plane, row.index, column, is_inner, are_inner)
    return planes * parts


def _segments(count: int, inner: range) -> list[tuple[range, bool]]:
    """Divide the range 0 to `count` into up to three parts, with `inner` in the middle."""
    if not inner:
        return [(range(count), False)]
    parts = [(range(inner.start), False), (inner, True), (range(inner.stop, count), False)]
    return [(part, is_inner) for part, is_inner in parts if part]


def _columns(ir: Routine, vectors: range, step: int) -> Iterator[Int64]:
    """Yield the first column of each vector of a row, in a loop or unrolled."""
    if len(vectors) <= _WRITTEN_OUT:
        yield from (number * step for number in vectors)
        return
    with ir.loop(vectors.start * step, vectors.stop * step, step) as column:
        yield column.index


def at_plane(ir: Routine, pointer: str, batch: Sequence[int], planes: MatrixLayout, number: Int64) -> str:
    """Write the address of the plane with this number."""
    return ir.moved(pointer, ir.unravelled(number, batch), planes.batch)


def at_element(
    ir: Routine, pointer: str, extents: tuple[int, int], itemsize: int, plane: Int64, row: Int64, column: Int64
) -> str:
    """Write the address of an element of dense planes."""
    position = ir.add(ir.mul(ir.add(ir.mul(plane, extents[0]), row), extents[1]), column)
    return ir.at(pointer, ir.mul(position, itemsize))


def fold_range(
    ir: Routine,
    first: Int64,
    past: Int64,
    carried: Sequence[tuple[str, str]],
    body: Callable[[Int64, Carried], Carried],
    written_out: int = 1,
) -> Carried:
    """Let `body` update the carried values for each index from `first` to before `past`; return the final values.

    `carried` are types and first values. Up to `written_out` iterations are unrolled.
    """
    if isinstance(first, int) and isinstance(past, int) and past - first <= written_out:
        values = [value for _, value in carried]
        for index in range(first, past):
            values = body(index, values)
        return values
    with ir.loop(first, past, carried=carried) as iteration:
        iteration.carry = body(iteration.index, iteration.carried)
    return iteration.carried


def deinterleaved(ir: Routine, vectors: Sequence[str]) -> list[str]:
    """Select every n-th lane of n consecutive vectors: from the first lane on, from the second, … from the n-th."""
    return [_every(ir, vectors, start) for start in range(len(vectors))]


def _every(ir: Routine, vectors: Sequence[str], start: int) -> str:
    count = ir.lanes
    sources = [start + lane * len(vectors) for lane in range(count)]
    result, result_lanes = vectors[0], sources
    for past, vector in zip(range(count, len(vectors) * count, count), vectors[1:], strict=True):
        # A shuffle takes lanes from two vectors. After the first shuffle, the lanes selected so far are in their final
        # positions. This one adds the lanes from `vector` behind them.
        new_lanes = [count + min(lane - past, count - 1) for lane in sources]
        lanes = [old if lane < past else new for lane, old, new in zip(sources, result_lanes, new_lanes, strict=True)]
        result = ir.shuffled(result, vector, lanes)
        result_lanes = list(range(count))
    return result


def select_lanes(ir: Routine, vector: str, lanes: Sequence[int | None]) -> str:
    """Select lanes of a vector by number, and zeros for None."""
    if list(lanes) == list(range(ir.lanes)):
        return vector
    return ir.shuffled(vector, ir.zero, [ir.lanes if lane is None else lane for lane in lanes])


class PoolGeometry(NamedTuple):
    """`positions` windows over planes [*batch, *extents] with the layout `planes`; pairs are of the two axes.

    Each window has a tap inside its plane.
    """

    dtype: str
    itemsize: int
    batch: tuple[int, ...]
    extents: tuple[int, int]
    positions: tuple[int, int]
    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    planes: MatrixLayout

    @property
    def work(self) -> int:
        """Number of taps of all windows."""
        return math.prod(self.batch) * math.prod(self.positions) * math.prod(self.size)

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets that kernels compute fit their integers."""
        sizes = zip(self.positions, self.stride, self.size, self.padding, strict=True)
        reach = [(n + MOST_LANES) * stride + size + padding for n, stride, size, padding in sizes]
        planes = zip(self.batch, self.planes.batch, strict=True)
        return offsets_fit([*planes, *zip(reach, self.planes[:2], strict=True)], self.stride)

    def is_whole(self, axis: int) -> bool:
        """Whether every window has at least two taps along an axis, and the first two are inside the plane."""
        size, padding, is_single = self.size[axis], self.padding[axis], self.positions[axis] == 1
        taps = min(size, self.extents[axis] + padding) - padding if is_single else size
        return taps > 1 and (is_single or padding == 0)

    def inner(self, axis: int, reach: int) -> range:
        """Return the range of windows whose first `reach` taps along an axis are inside the plane."""
        extent, stride, padding = self.extents[axis], self.stride[axis], self.padding[axis]
        past = min(self.positions[axis], (extent + padding - reach) // stride + 1)
        return range(-(-padding // stride), past)


#: results of a pool: maxima, the indices of maxima, gradients of maxima, or means
PoolDirection = Literal["max", "max_indices", "max_back", "avg"]


class DirectedPool(NamedTuple):
    """A pool and the kind of its result. Results are dense.

    "max" and "avg" give a number per window. "max_indices" gives the int64 index of the maximum in its plane.
    "max_back" adds the gradients of windows, with the layout `gradient_layout`, to the positions of the maxima.
    """

    geometry: PoolGeometry
    direction: PoolDirection
    gradient_layout: MatrixLayout | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ColumnReader:
    """Reader of the elements of a vector of windows, for `columns` neighbouring columns of the windows at a time."""

    ir: Routine
    geometry: PoolGeometry
    outside: float

    @property
    def columns(self) -> int:
        """Columns read at a time: with stride n, the elements between one tap's are those of the next n − 1 taps."""
        stride = self.geometry.stride[1]
        return stride if stride <= MOST_DEINTERLEAVED and self.geometry.planes.column == self.geometry.itemsize else 1

    def masks(self, start: Int64) -> list[str]:
        """Write the masks of the loads that `load_vectors` makes at column `start`."""
        ir, width = self.ir, self.geometry.extents[1]
        step = self.geometry.stride[1] // self.columns
        starts = [ir.add(start, number * ir.lanes) for number in range(self.columns)]
        return [ir.between(ir.sub(0, first_column), ir.sub(width, first_column), step) for first_column in starts]

    def load_vectors(self, x: str, masks: Sequence[str]) -> Sequence[str]:
        """Load the elements at x, one for each window, and those in the following columns."""
        ir, outside = self.ir, self.ir.splat(self.outside)
        step = self.geometry.stride[1] // self.columns * self.geometry.planes.column
        if step != ir.size:
            return [ir.gather(x, step, masks[0] or ir.first(ir.lanes), outside)]
        places = [ir.at(x, number * ir.lanes * step) for number in range(self.columns)]
        return deinterleaved(ir, [ir.load(place, mask, outside) for place, mask in zip(places, masks, strict=True)])


@dataclass(frozen=True, eq=False, slots=True)
class WindowVector:
    """A vector of windows, one right of the other.

    `top` and `left` are the first window's row and column in the plane, and `x` is its address. `first` and `past`
    bound the rows of the windows that are inside the plane. If `unmasked`, all columns are inside. `mask` has the
    windows that exist.
    """

    reader: ColumnReader
    x: str
    top: Int64
    left: Int64
    first: Int64
    past: Int64
    unmasked: bool
    mask: str

    def masks(self, column: Int64, count: int) -> list[list[str]]:
        """Write the masks for `load_elements` of `count` columns from `column` on."""
        ir, columns_at_once = self.reader.ir, self.reader.columns
        times = range(0, count, columns_at_once)
        if self.unmasked:
            return [[""] * columns_at_once for _ in times]
        start = ir.add(self.left, column)
        return [self.reader.masks(ir.add(start, offset)) for offset in times]

    def load_elements(self, row: Int64, column: Int64, count: int, masks: Sequence[Sequence[str]]) -> list[str]:
        """Load the windows' elements in a row of the windows, for `count` columns from `column` on."""
        ir, planes, columns_at_once = self.reader.ir, self.reader.geometry.planes, self.reader.columns
        x = ir.at(self.x, ir.add(ir.mul(row, planes.row), ir.mul(column, planes.column)))
        elements: list[str] = []
        for number, load_masks in enumerate(masks):
            elements += self.reader.load_vectors(ir.at(x, number * columns_at_once * planes.column), load_masks)
        return elements[:count]


def each_window(
    geometry: PoolGeometry,
    outside: float,
    itemsize: int,
    reduce: Callable[[WindowVector, str], None],
    planes: TableEntryOf,
    results: TableEntryOf,
) -> KernelPhase:
    """Let `reduce` write the results of windows, of `itemsize` bytes, to an address. Padding counts as `outside`."""
    ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
    reader, x, y = ColumnReader(ir, geometry, outside), ir.place(*planes), ir.place(*results)
    # Columns are read in groups of `reader.columns`, so a window is inner only if its last whole group is inside.
    reach = -(-geometry.size[1] // reader.columns) * reader.columns
    columns = geometry.inner(1, reach)
    # A second version of the code for inner rows pays if it is short, or if all rows are inner.
    rows = (
        geometry.inner(0, geometry.size[0])
        if geometry.padding[0] == 0 or math.prod(geometry.size) <= TAPS
        else range(0)
    )

    def write_vector(plane: Int64, row: Int64, column: Int64, is_inner: bool, unmasked: bool) -> None:
        windows = _windows(
            reader, at_plane(ir, x, geometry.batch, geometry.planes, plane), row, column, is_inner, unmasked
        )
        reduce(windows, at_element(ir, y, geometry.positions, itemsize, plane, row, column))

    vectors = range(-(-columns.start // ir.lanes), columns.stop // ir.lanes)
    items = sweep(ir, geometry.batch, geometry.positions, ir.lanes, (rows, vectors), write_vector)
    return ir.phase(items, geometry.work)


def _windows(reader: ColumnReader, x: str, row: Int64, column: Int64, is_inner: bool, unmasked: bool) -> WindowVector:
    ir, geometry = reader.ir, reader.geometry
    top = ir.sub(ir.mul(row, geometry.stride[0]), geometry.padding[0])
    left = ir.sub(ir.mul(column, geometry.stride[1]), geometry.padding[1])
    first: Int64 = 0 if is_inner else ir.maximum(0, ir.sub(0, top))
    past: Int64 = geometry.size[0] if is_inner else ir.minimum(geometry.size[0], ir.sub(geometry.extents[0], top))
    x = ir.at(x, ir.add(ir.mul(top, geometry.planes.row), ir.mul(left, geometry.planes.column)))
    mask = "" if unmasked else ir.below(ir.sub(geometry.positions[1], column))
    return WindowVector(reader, x, top, left, first, past, unmasked, mask)
