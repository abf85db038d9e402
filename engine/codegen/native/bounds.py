"""Bounds of the buffers of kernels, stated by the code that binds them: for a build that checks each access.

They stand in front of a kernel's table, with the table's length. The first access of a process outside of its buffer is
recorded, and all are made elsewhere: so the kernel comes to its end, and touches no memory that is not its own.
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
        """The words of `FaultEntry`; they are 0 if there was no fault."""
        return self._memory[: FaultEntry.SIZE]

    def tables(self, threads: int, size: int) -> HostArray:
        """Make tables of so many words, int64 [threads, size], all 0; if checked, with room for bounds before each."""
        if not self.checked:
            return np.zeros((threads, size), np.int64)
        words: HostArray = np.zeros((threads, _in_front(size) + size), np.int64)
        words[:, _in_front(size) - RECORD_WORD] = self._memory.ctypes.data
        words[:, _in_front(size) - LENGTH_WORD] = 8 * size
        return words[:, _in_front(size) :]

    def words(self, table: HostArray, position: int) -> list[int]:
        """Return the addresses of the words that bound the buffer at a position; none if accesses are not checked.

        Code that moves the address at that position has to move these bounds as far.
        """
        if not self.checked:
            return []
        first = int(table.ctypes.data) - 8 * first_word(position)
        return [first, first - 8]

    @staticmethod
    def state(tables: HostArray, position: int, before: int, behind: int) -> None:
        """State how many bytes before the addresses at a position, and from them on, are of their buffer."""
        words = tables.base
        assert words is not None
        at = _in_front(tables.shape[1]) - first_word(position)
        words[:, at] = tables[:, position] - before
        words[:, at - 1] = tables[:, position] + behind


#: of this process
WATCHED: Final = Bounds()


def reach(array: HostArray) -> tuple[int, int]:
    """Count the bytes before an array's first element, and from there on, that its elements lie in."""
    if not array.size:
        return 0, 0
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    return -sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + array.itemsize


def _in_front(size: int) -> int:
    """Count the words before a table of so many: the record's address, its bytes, and two for each of its own."""
    return 2 + 2 * size


def first_word(position: int) -> int:
    """Count the words from the table back to the first byte of a buffer; before it stands the byte past the last."""
    return 3 + 2 * position
