"""Blocks in which NumPy goes through a space: of whole rows, that fit in a core's own cache.

How depends on the sizes alone, never on threads; so do the sums of a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from engine.loops.program import Level, Loop, Space

#: elements of a block where one thread works alone
ROW_BLOCK = 1 << 14
#: elements of a block where threads take turns with Python's lock, and of the least work that is shared
SHARED_ROW_BLOCK = 1 << 16
LEAST_SHARED = 1 << 19

Index = tuple[int | slice, ...]


class RowBlock(NamedTuple):
    """Place of a block along the axes of a space, its columns last, as an index; and its shape.

    Every slice says where it ends. A space whose last row is short is seen through views of whole rows, which reach
    beyond its memory: all of such a view is more than there is.
    """

    place: Index
    shape: tuple[int, ...]

    @property
    def rows(self) -> Index:
        """The index for what has one value a row, and extent 1 in place of the columns."""
        return (*self.place[:-1], slice(0, 1))

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


def blocks_of(loop: Loop, space: Space) -> list[RowBlock]:
    """The blocks of a space: of whole rows, where the kernel has sums over them or over columns."""
    full, size, whole, last = _divided(loop, space)
    return [*row_blocks(full, size, whole), *last]


def first_block(loop: Loop, space: Space) -> tuple[list[RowBlock], int]:
    """The first block, as large as any, if there is one; and how many there are: at once, whatever the size."""
    full, size, whole, last = _divided(loop, space)
    return [*islice(row_blocks(full, size, whole), 1), *last][:1], row_block_count(full, size, whole) + len(last)


def _divided(loop: Loop, space: Space) -> tuple[tuple[int, ...], int, int, list[RowBlock]]:
    """What `row_blocks` makes the blocks of, and the one behind them, of a last row that is short."""
    *rows, columns = extents(loop, space)
    whole = int(not is_elementwise(loop))
    size = block_elements(math.prod(rows) * columns)
    short = space.length - (math.prod(rows) - 1) * columns
    if short == columns or not math.prod(rows):
        return (*rows, columns), size, whole, []
    (count,) = rows
    last = RowBlock((slice(count - 1, count), slice(0, short)), (1, short))
    return (count - 1, columns), size, whole, [last]


def extents(loop: Loop, space: Space) -> tuple[int, ...]:
    """The extents of the row axes and the columns; one row, where all of the space lies in a line."""
    return (1, space.length) if is_flat(loop, space) else (*(space.rows or (1,)), space.columns)


def is_flat(loop: Loop, space: Space) -> bool:
    """Whether rows do not matter: nothing is summed, elements lie densely, and what is one a row is one for all."""
    levels = [*(operand.level for operand in loop.operands), *([Level.ELEMENT] * len(loop.results))]
    steps = [(space.columns,) if level == Level.ELEMENT else (0,) for level in levels]
    return len(space.rows) == 1 and is_elementwise(loop) and list(space.strides) == steps


def is_elementwise(loop: Loop) -> bool:
    """Whether no result, and nothing on the way to it, takes in more than one element."""
    whole = any(instruction.op.startswith("row_") for instruction in loop.instructions)
    return not whole and all(result.kind == "element" for result in loop.results)


def block_elements(size: int) -> int:
    """Elements that a block of a space of `size` should have."""
    return ROW_BLOCK if size < LEAST_SHARED else SHARED_ROW_BLOCK


def row_blocks(dims: Sequence[int], size: int, whole: int = 0) -> Iterator[RowBlock]:
    """Blocks of about `size` elements at most, the last `whole` axes undivided, all about as large, in order."""
    if not math.prod(dims):
        return
    axis, step = _cut(dims, size, whole)
    inner = tuple(dims[axis:])
    whole_axes = tuple(slice(0, extent) for extent in inner)
    if not axis:
        yield RowBlock(whole_axes, inner)
        return
    extent = dims[axis - 1]
    for outer in _indices(dims[: axis - 1]):
        for start in range(0, extent, step):
            stop = min(start + step, extent)
            yield RowBlock((*outer, slice(start, stop), *whole_axes), (stop - start, *inner))


def row_block_count(dims: Sequence[int], size: int, whole: int = 0) -> int:
    """How many `row_blocks` there are."""
    if not math.prod(dims):
        return 0
    axis, step = _cut(dims, size, whole)
    return math.prod(dims[: axis - 1]) * -(-dims[axis - 1] // step) if axis else 1


def _cut(dims: Sequence[int], size: int, whole: int) -> tuple[int, int]:
    """The axes before the one behind which blocks are undivided, and how much of the last of them one takes; 0: all."""
    axis = len(dims) - whole
    while axis and math.prod(dims[axis - 1 :]) <= size:
        axis -= 1
    if not axis:
        return 0, 0
    extent, most = dims[axis - 1], max(1, size // math.prod(dims[axis:]))
    return axis, -(-extent // -(-extent // most))


def _indices(dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not dims:
        yield ()
        return
    for first in range(dims[0]):
        yield from ((first, *rest) for rest in _indices(dims[1:]))
