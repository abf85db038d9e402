"""Kernels that make planes [rows, columns], vector by vector, of what lies around the same place in other planes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.microkernels.product import Matrices
from engine.microkernels.routine import Int64, Routine

#: planes, at least, of which each is an item, so that threads find work; of fewer each row is one
PLANES: Final = 8
#: vectors of a row that are written out one by one, with masks that are constants
_WRITTEN_OUT: Final = 4

Carried = list[str]


def sweep(
    to: Routine,
    batch: Sequence[int],
    extents: tuple[int, int],
    step: int,
    inner: tuple[range, range],
    write_vector: Callable[[Int64, Int64, Int64, bool, bool], None],
) -> int:
    """Have `write_vector` write planes [*batch, *extents], vectors of `step` columns; how many items these are.

    It is called with the number of the plane, the row and the first column; and whether the row and the vector surely
    are among the `inner` ones, of which less is to be asked.
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
    """0 to count in up to three parts, the middle one being `inner`."""
    if not inner:
        return [(range(count), False)]
    parts = [(range(inner.start), False), (inner, True), (range(inner.stop, count), False)]
    return [(part, is_inner) for part, is_inner in parts if part]


def _columns(to: Routine, vectors: range, step: int) -> Iterator[Int64]:
    """The first column of each of these vectors of a row: what is done with one is written once, or for each."""
    if len(vectors) <= _WRITTEN_OUT:
        yield from (number * step for number in vectors)
        return
    with to.loop(vectors.start * step, vectors.stop * step, step) as column:
        yield column.index


def at_plane(to: Routine, pointer: str, batch: Sequence[int], planes: Matrices, number: Int64) -> str:
    """Where the plane of a number lies."""
    for index, step in zip(to.unravelled(number, batch), planes.batch, strict=True):
        pointer = to.at(pointer, to.mul(index, step))
    return pointer


def at_element(
    to: Routine,
    pointer: str,
    extents: tuple[int, int],
    itemsize: int,
    plane: Int64,
    row: Int64,
    column: Int64,
) -> str:
    """Where an element of dense planes lies."""
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
    """What `body` makes of the values carried, for each index from `first` to before `past`.

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
