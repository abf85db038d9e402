"""A build of kernels for tests: each access is compared with the extent of its buffer before it is made.

Whoever binds a kernel states in front of its table how long that is, and where each buffer begins and ends. An access
that is not inside of its own is written down, the first of a process, and made elsewhere: so the kernel comes to its
end, and nothing is read or written that is not its own.
"""

from __future__ import annotations

from enum import IntEnum
from string import Template
from typing import Final, NamedTuple

import numpy as np

from engine.graph.tensor_type import HostArray
from engine.loops.llvm_instructions import Assembly

#: how many words before a table the address of the record stands, and the table's bytes
_RECORD, _LENGTH = 1, 2
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
    """Whether kernels are printed and bound so from now on, in this process; and the first fault of all of them."""

    def __init__(self) -> None:
        self.checked = False
        self._memory: HostArray = np.zeros(FaultEntry.SIZE + _ELSEWHERE // 8, np.int64)

    @property
    def record(self) -> HostArray:
        """The words of `FaultEntry`; where none has been found, they are 0."""
        return self._memory[: FaultEntry.SIZE]

    def tables(self, threads: int, size: int) -> HostArray:
        """Tables of so many words, int64 [threads, size], all 0; in front of each is room for bounds, if need be."""
        if not self.checked:
            return np.zeros((threads, size), np.int64)
        words: HostArray = np.zeros((threads, _in_front(size) + size), np.int64)
        words[:, _in_front(size) - _RECORD] = self._memory.ctypes.data
        words[:, _in_front(size) - _LENGTH] = 8 * size
        return words[:, _in_front(size) :]

    @staticmethod
    def state(tables: HostArray, position: int, before: int, behind: int) -> None:
        """Say of the addresses at a position how many bytes before them, and from them on, are of their buffer."""
        words = tables.base
        assert words is not None
        at = _in_front(tables.shape[1]) - _first(position)
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


def _first(position: int) -> int:
    """How many words before the table the first byte of a buffer stands; before it, the byte past the last."""
    return 3 + 2 * position


class BufferExtent(NamedTuple):
    """What a pointer is of: the position in the table that it comes from; and in a checked kernel, names of bounds."""

    position: int
    first: str = ""
    past: str = ""


class BoundsWriter:
    """Writes what a checked kernel looks at. It is the kernel's text with lines more, each of a `%bounds.` name."""

    def __init__(self, to: Assembly) -> None:
        self._to = to
        self._count = 0

    def stated(self, position: int) -> BufferExtent:
        """The buffer at a position in the table, with the bounds that are stated in front of it."""
        return BufferExtent(position, self._word(-_first(position)), self._word(-_first(position) - 1))

    def table(self) -> BufferExtent:
        """The table itself."""
        first = self._value("ptrtoint ptr %table to i64")
        return BufferExtent(-1, first, self._value(f"add i64 {first}, {self._word(-_LENGTH)}"))

    def part(self, buffer: BufferExtent, pointer: str, count: str, size: int) -> BufferExtent:
        """Of what a buffer has from a pointer on, so many elements of so many bytes, if it has as many."""
        first, nbytes = self._value(f"ptrtoint ptr {pointer} to i64"), self._value(f"mul i64 {count}, {size}")
        past = self._value(f"add i64 {first}, {nbytes}")
        is_more = self._value(f"icmp ugt i64 {past}, {buffer.past}")
        return BufferExtent(buffer.position, first, self._value(f"select i1 {is_more}, i64 {buffer.past}, i64 {past}"))

    def bounded(self, buffer: BufferExtent, pointer: str, size: int, lanes: int, mask: str) -> str:
        """The pointer, or one elsewhere, unless all elements of `size` bytes inside the mask are in the buffer.

        There are as many as lanes, one behind the other.
        """
        return self._looked_at(_BOUNDED, f"bounded.{lanes}", "ptr", buffer, pointer, size, lanes, mask)

    def each_bounded(self, buffer: BufferExtent, pointers: str, size: int, lanes: int, mask: str) -> str:
        """As `bounded`, of a vector of pointers with an element each."""
        type = f"<{lanes} x ptr>"
        return self._looked_at(_EACH_BOUNDED, f"bounded.each.{lanes}", type, buffer, pointers, size, lanes, mask)

    def _looked_at(
        self, text: Template, function: str, type: str, buffer: BufferExtent, at: str, size: int, lanes: int, mask: str
    ) -> str:
        numbers = {"N": lanes, "ELSEWHERE": 8 * FaultEntry.SIZE, "RECORD": _RECORD} | {
            entry.name: entry.value for entry in FaultEntry
        }
        self._to.declarations.update(each.substitute(numbers) for each in (_REDUCTIONS, _OUTSIDE, text))
        which = f"i64 {buffer.first}, i64 {buffer.past}, i64 {buffer.position}, i64 {self._count + 1}, ptr %table"
        inside = mask or "splat (i1 true)"
        return self._value(f"call {type} @{function}({type} {at}, <{lanes} x i1> {inside}, i64 {size}, {which})")

    def _word(self, position: int) -> str:
        return self._value(f"load i64, ptr {self._value(f'getelementptr i64, ptr %table, i64 {position}')}, align 8")

    def _value(self, text: str) -> str:
        self._count += 1
        return self._to.value(text, f"%bounds.{self._count}")


_REDUCTIONS: Final = Template("""\
declare i1 @llvm.vector.reduce.or.v${N}i1(<$N x i1>)
declare i64 @llvm.vector.reduce.smax.v${N}i64(<$N x i64>)
""")

#: which of the elements at these addresses are not in the buffer; the first time in a process, that is written down
_OUTSIDE: Final = Template("""\
define internal <$N x i1> @outside.$N(<$N x i64> %each, <$N x i1> %mask, i64 %size, i64 %first, i64 %past,
                                      i64 %position, i64 %access, ptr %table) nounwind {
  %extent = sub i64 %past, %first
  %first.in = insertelement <$N x i64> poison, i64 %first, i32 0
  %firsts = shufflevector <$N x i64> %first.in, <$N x i64> poison, <$N x i32> zeroinitializer
  %extent.in = insertelement <$N x i64> poison, i64 %extent, i32 0
  %extents = shufflevector <$N x i64> %extent.in, <$N x i64> poison, <$N x i32> zeroinitializer
  %size.in = insertelement <$N x i64> poison, i64 %size, i32 0
  %sizes = shufflevector <$N x i64> %size.in, <$N x i64> poison, <$N x i32> zeroinitializer
  %offset = sub <$N x i64> %each, %firsts
  %begins = icmp ult <$N x i64> %offset, %extents
  %room = sub <$N x i64> %extents, %offset
  %fits = icmp uge <$N x i64> %room, %sizes
  %inside = and <$N x i1> %begins, %fits
  %not = xor <$N x i1> %inside, splat (i1 true)
  %outside = and <$N x i1> %mask, %not
  %any = call i1 @llvm.vector.reduce.or.v${N}i1(<$N x i1> %outside)
  br i1 %any, label %fault, label %end
fault:
  %record.in = getelementptr i64, ptr %table, i64 -$RECORD
  %record = load ptr, ptr %record.in, align 8
  %found = cmpxchg ptr %record, i64 0, i64 1 monotonic monotonic
  %is.first = extractvalue { i64, i1 } %found, 1
  br i1 %is.first, label %note, label %end
note:
  %told = select <$N x i1> %outside, <$N x i64> %offset, <$N x i64> splat (i64 -9223372036854775808)
  %furthest = call i64 @llvm.vector.reduce.smax.v${N}i64(<$N x i64> %told)
  %address = ptrtoint ptr %table to i64
  %table.at = getelementptr i64, ptr %record, i64 $TABLE
  store i64 %address, ptr %table.at, align 8
  %position.at = getelementptr i64, ptr %record, i64 $POSITION
  store i64 %position, ptr %position.at, align 8
  %access.at = getelementptr i64, ptr %record, i64 $ACCESS
  store i64 %access, ptr %access.at, align 8
  %offset.at = getelementptr i64, ptr %record, i64 $OFFSET
  store i64 %furthest, ptr %offset.at, align 8
  %extent.at = getelementptr i64, ptr %record, i64 $EXTENT
  store i64 %extent, ptr %extent.at, align 8
  %element.at = getelementptr i64, ptr %record, i64 $ELEMENT
  store i64 %size, ptr %element.at, align 8
  %lanes.at = getelementptr i64, ptr %record, i64 $LANES
  store i64 $N, ptr %lanes.at, align 8
  br label %end
end:
  ret <$N x i1> %outside
}
""")

_BOUNDED: Final = Template("""\
define internal ptr @bounded.$N(ptr %at, <$N x i1> %mask, i64 %size, i64 %first, i64 %past, i64 %position,
                                i64 %access, ptr %table) nounwind {
  %address = ptrtoint ptr %at to i64
  %address.in = insertelement <$N x i64> poison, i64 %address, i32 0
  %addresses = shufflevector <$N x i64> %address.in, <$N x i64> poison, <$N x i32> zeroinitializer
  %size.in = insertelement <$N x i64> poison, i64 %size, i32 0
  %sizes = shufflevector <$N x i64> %size.in, <$N x i64> poison, <$N x i32> zeroinitializer
  %numbers = call <$N x i64> @llvm.stepvector.v${N}i64()
  %apart = mul <$N x i64> %numbers, %sizes
  %each = add <$N x i64> %addresses, %apart
  %outside = call <$N x i1> @outside.$N(<$N x i64> %each, <$N x i1> %mask, i64 %size, i64 %first, i64 %past,
                                        i64 %position, i64 %access, ptr %table)
  %any = call i1 @llvm.vector.reduce.or.v${N}i1(<$N x i1> %outside)
  %record.in = getelementptr i64, ptr %table, i64 -$RECORD
  %record = load ptr, ptr %record.in, align 8
  %elsewhere = getelementptr i8, ptr %record, i64 $ELSEWHERE
  %chosen = select i1 %any, ptr %elsewhere, ptr %at
  ret ptr %chosen
}
declare <$N x i64> @llvm.stepvector.v${N}i64()
""")

_EACH_BOUNDED: Final = Template("""\
define internal <$N x ptr> @bounded.each.$N(<$N x ptr> %at, <$N x i1> %mask, i64 %size, i64 %first, i64 %past,
                                            i64 %position, i64 %access, ptr %table) nounwind {
  %each = ptrtoint <$N x ptr> %at to <$N x i64>
  %outside = call <$N x i1> @outside.$N(<$N x i64> %each, <$N x i1> %mask, i64 %size, i64 %first, i64 %past,
                                        i64 %position, i64 %access, ptr %table)
  %record.in = getelementptr i64, ptr %table, i64 -$RECORD
  %record = load ptr, ptr %record.in, align 8
  %elsewhere = getelementptr i8, ptr %record, i64 $ELSEWHERE
  %elsewhere.in = insertelement <$N x ptr> poison, ptr %elsewhere, i32 0
  %elsewheres = shufflevector <$N x ptr> %elsewhere.in, <$N x ptr> poison, <$N x i32> zeroinitializer
  %chosen = select <$N x i1> %outside, <$N x ptr> %elsewheres, <$N x ptr> %at
  ret <$N x ptr> %chosen
}
""")
