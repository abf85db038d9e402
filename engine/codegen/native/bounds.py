"""Bounds of the buffers of kernels, stated by whoever binds them: for a build that compares each access.

It stands in front of a kernel's table, with how long that is. An access that is not inside of its buffer is written
down, the first of a process, and made elsewhere: so the kernel comes to its end, and nothing is read or written that is
not its own.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from engine.ir.tensor_type import HostArray

#: how many words before a table the address of the record stands, and the table's bytes
RECORD_WORD, LENGTH_WORD = 1, 2
#: bytes that accesses outside of their buffers are made to: as many as the widest vector has
_ELSEWHERE: Final = 512


class FaultEntry(IntEnum):
    """Words of the record of an access outside of its buffer."""

    FOUND = 0
    #: address of the table that the kernel was called with
    TABLE = 1
    #: of the buffer in the table; −1 for the table itself
    POSITION = 2
    #: number of the access in the kernel's text
    ACCESS = 3
    #: bytes from the first of the buffer to the first of the element, of the lane that is furthest away
    OFFSET = 4
    EXTENT = 5
    #: bytes of an element
    ELEMENT = 6
    LANES = 7
    SIZE = 8


class Bounds:
    """Switch by which kernels are printed and bound so, in this process; and the first fault of all of them."""

    def __init__(self) -> None:
        self.checked = False
        self._memory: HostArray = np.zeros(FaultEntry.SIZE + _ELSEWHERE // 8, np.int64)

    @property
    def record(self) -> HostArray:
        """The words of `FaultEntry`; where none has been found, they are 0."""
        return self._memory[: FaultEntry.SIZE]

    def tables(self, threads: int, size: int) -> HostArray:
        """Tables of so many words, int64 [threads, size], all 0; in front of each is a place for bounds, if need be."""
        if not self.checked:
            return np.zeros((threads, size), np.int64)
        words: HostArray = np.zeros((threads, _in_front(size) + size), np.int64)
        words[:, _in_front(size) - RECORD_WORD] = self._memory.ctypes.data
        words[:, _in_front(size) - LENGTH_WORD] = 8 * size
        return words[:, _in_front(size) :]

    def words(self, table: HostArray, position: int) -> list[int]:
        """Addresses of the words that say where what stands at a position begins and ends; none where none is checked.

        Whoever moves that address has to move what these say as far.
        """
        if not self.checked:
            return []
        first = int(table.ctypes.data) - 8 * first_word(position)
        return [first, first - 8]

    @staticmethod
    def state(tables: HostArray, position: int, before: int, behind: int) -> None:
        """Say of the addresses at a position how many bytes before them, and from them on, are of their buffer."""
        words = tables.base
        assert words is not None
        at = _in_front(tables.shape[1]) - first_word(position)
        words[:, at] = tables[:, position] - before
        words[:, at - 1] = tables[:, position] + behind


#: of this process
WATCHED: Final = Bounds()


def reach(array: HostArray) -> tuple[int, int]:
    """Bytes before an array's first element, and from there on, that its elements lie in."""
    if not array.size:
        return 0, 0
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    return -sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + array.itemsize


def _in_front(size: int) -> int:
    """Words before a table of so many: the record's address, its bytes, and two for each of its own."""
    return 2 + 2 * size


def first_word(position: int) -> int:
    """How many words before the table the first byte of a buffer stands; before it, the byte past the last."""
    return 3 + 2 * position
