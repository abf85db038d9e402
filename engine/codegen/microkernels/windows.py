"""Windows over planes, side by side in vectors: what each of them sees at one of its taps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from engine.codegen.microkernels.product import Matrices
from engine.codegen.microkernels.recipe import KernelPhase, TableEntryOf
from engine.codegen.microkernels.register_tile import lanes_for
from engine.codegen.microkernels.routine import MOST_LANES, Int64, Routine, hold_offsets

#: planes, at least, of which each is an item, so that threads find work; of fewer each row is one
PLANES: Final = 8
#: vectors of a row that are written out one by one, with masks that are constants
_WRITTEN_OUT: Final = 4
#: distance of windows, at most, at which what lies between is read with what is wanted: more are gathered
PARTED: Final = 4
#: taps that are written out one by one
TAPS: Final = 16

Carried = list[str]


def sweep(
    to: Routine,
    batch: Sequence[int],
    extents: tuple[int, int],
    step: int,
    inner: tuple[range, range],
    write_vector: Callable[[Int64, Int64, Int64, bool, bool], None],
) -> int:
    """Let `write_vector` write planes [*batch, *extents], vectors of `step` columns; return the number of items.

    It is called with the number of the plane, the row and the first column; and whether the row and the vector are
    surely among the `inner` ones, which need fewer checks.
    """
    planes, (rows, columns) = math.prod(batch), extents
    parts = 1 if planes >= PLANES else rows
    with to.loop("%first", "%past") as item:
        plane, part = to.divided(item.index, parts)
        start = to.mul(part, rows // parts)
        stop = to.add(start, rows // parts)
        for some, is_inner in _segments(rows, inner[0]):
            with to.loop(to.most(start, some.start), to.least(stop, some.stop)) as row:
                for vectors, are_inner in _segments(-(-columns // step), inner[1]):
                    for column in _columns(to, vectors, step):
                        write_vector(plane, row.index, column, is_inner, are_inner)
    return planes * parts


def _segments(count: int, inner: range) -> list[tuple[range, bool]]:
    """Divide 0 to count into up to three parts, the middle one being `inner`."""
    if not inner:
        return [(range(count), False)]
    parts = [(range(inner.start), False), (inner, True), (range(inner.stop, count), False)]
    return [(part, is_inner) for part, is_inner in parts if part]


def _columns(to: Routine, vectors: range, step: int) -> Iterator[Int64]:
    """Yield the first column of each of these vectors of a row, in a loop or one by one."""
    if len(vectors) <= _WRITTEN_OUT:
        yield from (number * step for number in vectors)
        return
    with to.loop(vectors.start * step, vectors.stop * step, step) as column:
        yield column.index


def at_plane(to: Routine, pointer: str, batch: Sequence[int], planes: Matrices, number: Int64) -> str:
    """Write the place of the plane of a number."""
    return to.moved(pointer, to.unravelled(number, batch), planes.batch)


def at_element(
    to: Routine, pointer: str, extents: tuple[int, int], itemsize: int, plane: Int64, row: Int64, column: Int64
) -> str:
    """Write the place of an element of dense planes."""
    place = to.add(to.mul(to.add(to.mul(plane, extents[0]), row), extents[1]), column)
    return to.at(pointer, to.mul(place, itemsize))


def repeated(
    to: Routine,
    first: Int64,
    past: Int64,
    carried: Sequence[tuple[str, str]],
    body: Callable[[Int64, Carried], Carried],
    written_out: int = 1,
) -> Carried:
    """Let `body` update the values carried, for each index from `first` to before `past`.

    `carried` are types and first values. Up to so many rounds are written out.
    """
    if isinstance(first, int) and isinstance(past, int) and past - first <= written_out:
        values = [value for _, value in carried]
        for index in range(first, past):
            values = body(index, values)
        return values
    with to.loop(first, past, carried=carried) as each:
        each.carry = body(each.index, each.carried)
    return each.carried


def parted(to: Routine, vectors: Sequence[str]) -> list[str]:
    """Select every n-th lane of n vectors, all in a row: from the first on, from the second, … the n-th."""
    return [_every(to, vectors, start) for start in range(len(vectors))]


def _every(to: Routine, vectors: Sequence[str], start: int) -> str:
    count = to.lanes
    wanted = [start + lane * len(vectors) for lane in range(count)]
    found, so_far = vectors[0], wanted
    for past, vector in zip(range(count, len(vectors) * count, count), vectors[1:], strict=True):
        # the lanes of this vector, behind those that were found and are where they belong
        here = [count + min(lane - past, count - 1) for lane in wanted]
        lanes = [old if lane < past else new for lane, old, new in zip(wanted, so_far, here, strict=True)]
        found = to.shuffled(found, vector, lanes)
        so_far = list(range(count))
    return found


def arranged(to: Routine, vector: str, lanes: Sequence[int | None]) -> str:
    """Select the lanes of these numbers, and zeros for None."""
    if list(lanes) == list(range(to.lanes)):
        return vector
    return to.shuffled(vector, to.zero, [to.lanes if lane is None else lane for lane in lanes])


class PoolGeometry(NamedTuple):
    """Windows over planes [*batch, *extents] that lie as `planes` says, `positions` of them; two numbers of each.

    Each window has a tap inside of its plane.
    """

    dtype: str
    itemsize: int
    batch: tuple[int, ...]
    extents: tuple[int, int]
    positions: tuple[int, int]
    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    planes: Matrices

    @property
    def work(self) -> int:
        """Taps of all windows."""
        return math.prod(self.batch) * math.prod(self.positions) * math.prod(self.size)

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets that kernels compute fit their words."""
        sizes = zip(self.positions, self.stride, self.size, self.padding, strict=True)
        reach = [(n + MOST_LANES) * stride + size + padding for n, stride, size, padding in sizes]
        planes = zip(self.batch, self.planes.batch, strict=True)
        return hold_offsets([*planes, *zip(reach, self.planes[:2], strict=True)], self.stride)

    def is_whole(self, axis: int) -> bool:
        """Whether the first two taps that an axis has are inside for each window, and there are as many."""
        size, padding, one = self.size[axis], self.padding[axis], self.positions[axis] == 1
        taps = min(size, self.extents[axis] + padding) - padding if one else size
        return taps > 1 and (one or padding == 0)

    def inner(self, axis: int, reach: int) -> range:
        """The windows of which `reach` taps along an axis are inside."""
        extent, stride, padding = self.extents[axis], self.stride[axis], self.padding[axis]
        past = min(self.positions[axis], (extent + padding - reach) // stride + 1)
        return range(-(-padding // stride), past)


#: results of a pool: maxima, the places of these, their gradients, or means
PoolDirection = Literal["max", "max_indices", "max_back", "avg"]


class DirectedPool(NamedTuple):
    """A pool, and its kind of result. Results are dense.

    "max" and "avg" give a number for each window, "max_indices" the int64 at which of a plane's elements the maximum
    is. "max_back" adds the numbers of windows, which lie as `given` says, to where the maxima are.
    """

    of: PoolGeometry
    direction: PoolDirection
    given: Matrices | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ColumnReader:
    """Reader of neighbouring columns of a vector of windows, `columns` at a time."""

    to: Routine
    of: PoolGeometry
    outside: float

    @property
    def columns(self) -> int:
        """The distance of windows: between one tap's numbers are those of the next taps."""
        stride = self.of.stride[1]
        return stride if stride <= PARTED and self.of.planes.column == self.of.itemsize else 1

    def masks(self, start: Int64) -> list[str]:
        """Write the masks of the loads that `load_vectors` makes at column `start`."""
        to, width = self.to, self.of.extents[1]
        step = self.of.stride[1] // self.columns
        starts = [to.add(start, number * to.lanes) for number in range(self.columns)]
        return [to.between(to.sub(0, at), to.sub(width, at), step) for at in starts]

    def load_vectors(self, x: str, masks: Sequence[str]) -> Sequence[str]:
        """Load the numbers at x, one for each window, and those right of them."""
        to, outside = self.to, self.to.splat(self.outside)
        step = self.of.stride[1] // self.columns * self.of.planes.column
        if step != to.size:
            return [to.gather(x, step, masks[0] or to.first(to.lanes), outside)]
        places = [to.at(x, number * to.lanes * step) for number in range(self.columns)]
        return parted(to, [to.load(place, mask, outside) for place, mask in zip(places, masks, strict=True)])


@dataclass(frozen=True, eq=False, slots=True)
class WindowVector:
    """A vector of windows, one right of the other.

    `top` and `left` say where in the plane the first one's first tap is, `x` where in memory, and `first` and `past`
    which rows of theirs are inside. Of `wide` ones all columns are. `here` is the mask of those that there are.
    """

    reader: ColumnReader
    x: str
    top: Int64
    left: Int64
    first: Int64
    past: Int64
    wide: bool
    here: str

    def masks(self, column: Int64, count: int) -> list[list[str]]:
        """Write the masks for `seen` of so many columns from `column` on."""
        to, at_once = self.reader.to, self.reader.columns
        times = range(0, count, at_once)
        if self.wide:
            return [[""] * at_once for _ in times]
        start = to.add(self.left, column)
        return [self.reader.masks(to.add(start, more)) for more in times]

    def seen(self, row: Int64, column: Int64, count: int, masks: Sequence[Sequence[str]]) -> list[str]:
        """Load the elements of the windows at a row of theirs, and so many columns from `column` on."""
        to, planes, at_once = self.reader.to, self.reader.of.planes, self.reader.columns
        x = to.at(self.x, to.add(to.mul(row, planes.row), to.mul(column, planes.column)))
        seen: list[str] = []
        for number, of_loads in enumerate(masks):
            seen += self.reader.load_vectors(to.at(x, number * at_once * planes.column), of_loads)
        return seen[:count]


def each_window(
    of: PoolGeometry,
    outside: float,
    itemsize: int,
    reduce: Callable[[WindowVector, str], None],
    planes: TableEntryOf,
    results: TableEntryOf,
) -> KernelPhase:
    """Let `reduce` write the results of windows, `itemsize` bytes each, to an address. Padding counts as `outside`."""
    to = Routine(of.dtype, lanes_for(of.itemsize))
    reader, x, y = ColumnReader(to, of, outside), to.place(*planes), to.place(*results)
    reach = -(-of.size[1] // reader.columns) * reader.columns
    columns = of.inner(1, reach)
    rows = of.inner(0, of.size[0]) if of.padding[0] == 0 or math.prod(of.size) <= TAPS else range(0)

    def write_vector(plane: Int64, row: Int64, column: Int64, is_inner: bool, wide: bool) -> None:
        windows = _windows(reader, at_plane(to, x, of.batch, of.planes, plane), row, column, is_inner, wide)
        reduce(windows, at_element(to, y, of.positions, itemsize, plane, row, column))

    vectors = range(-(-columns.start // to.lanes), columns.stop // to.lanes)
    items = sweep(to, of.batch, of.positions, to.lanes, (rows, vectors), write_vector)
    return to.phase(items, of.work)


def _windows(reader: ColumnReader, x: str, row: Int64, column: Int64, is_inner: bool, wide: bool) -> WindowVector:
    to, of = reader.to, reader.of
    top = to.sub(to.mul(row, of.stride[0]), of.padding[0])
    left = to.sub(to.mul(column, of.stride[1]), of.padding[1])
    first: Int64 = 0 if is_inner else to.most(0, to.sub(0, top))
    past: Int64 = of.size[0] if is_inner else to.least(of.size[0], to.sub(of.extents[0], top))
    x = to.at(x, to.add(to.mul(top, of.planes.row), to.mul(left, of.planes.column)))
    here = "" if wide else to.below(to.sub(of.positions[1], column))
    return WindowVector(reader, x, top, left, first, past, wide, here)
