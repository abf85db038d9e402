"""A build of kernels for tests: each access is compared with the extent of its buffer before it is made."""

from __future__ import annotations

from string import Template
from typing import Final, NamedTuple

from engine.loops.assembly import Assembly
from engine.native.bounds import LENGTH_WORD, RECORD_WORD, FaultEntry, first_word


class BufferExtent(NamedTuple):
    """Buffer of a pointer: the position in the table that it comes from; and in a checked kernel, names of bounds."""

    position: int
    first: str = ""
    past: str = ""


class BoundsWriter:
    """Writer of what a checked kernel looks at. It is the kernel's text with lines more, each of a `%bounds.` name."""

    def __init__(self, to: Assembly) -> None:
        self._to = to
        self._count = 0

    def stated(self, position: int) -> BufferExtent:
        """The buffer at a position in the table, with the bounds that are stated in front of it."""
        return BufferExtent(position, self._word(-first_word(position)), self._word(-first_word(position) - 1))

    def table(self) -> BufferExtent:
        """The table itself."""
        first = self._value("ptrtoint ptr %table to i64")
        return BufferExtent(-1, first, self._value(f"add i64 {first}, {self._word(-LENGTH_WORD)}"))

    def part(self, buffer: BufferExtent, pointer: str, count: str, size: int) -> BufferExtent:
        """Of what a buffer has from a pointer on, so many elements of so many bytes, if it has as many."""
        first, nbytes = self._value(f"ptrtoint ptr {pointer} to i64"), self._value(f"mul i64 {count}, {size}")
        past = self._value(f"add i64 {first}, {nbytes}")
        is_more = self._value(f"icmp ugt i64 {past}, {buffer.past}")
        return BufferExtent(buffer.position, first, self._value(f"select i1 {is_more}, i64 {buffer.past}, i64 {past}"))

    def moved(self, buffer: BufferExtent, count: str, size: int) -> BufferExtent:
        """A buffer as large, so many elements of so many bytes further."""
        nbytes = self._value(f"mul i64 {count}, {size}")
        first, past = (self._value(f"add i64 {bound}, {nbytes}") for bound in (buffer.first, buffer.past))
        return BufferExtent(buffer.position, first, past)

    def bounded(self, buffer: BufferExtent, pointer: str, size: int, lanes: int, mask: str) -> str:
        """The pointer, or one elsewhere, unless all elements of `size` bytes inside the mask are in the buffer.

        There are as many as lanes, one behind the other.
        """
        if lanes == 1:
            lanes, mask = 2, self._one_of_two(mask)
        return self._looked_at(_BOUNDED, f"bounded.{lanes}", "ptr", buffer, pointer, size, lanes, mask)

    def each_bounded(self, buffer: BufferExtent, pointers: str, size: int, lanes: int, mask: str) -> str:
        """As `bounded`, of a vector of pointers with an element each."""
        if lanes == 1:
            both = self._value(f"shufflevector <1 x ptr> {pointers}, <1 x ptr> poison, <2 x i32> zeroinitializer")
            found = self.each_bounded(buffer, both, size, 2, self._one_of_two(mask))
            return self._value(f"shufflevector <2 x ptr> {found}, <2 x ptr> poison, <1 x i32> zeroinitializer")
        type = f"<{lanes} x ptr>"
        return self._looked_at(_EACH_BOUNDED, f"bounded.each.{lanes}", type, buffer, pointers, size, lanes, mask)

    def _one_of_two(self, mask: str) -> str:
        """The mask of one lane as that of two, as a fault then says: LLVM 22 has no code for functions of <1 x i1>."""
        inside = mask or "splat (i1 true)"
        return self._value(f"shufflevector <1 x i1> {inside}, <1 x i1> zeroinitializer, <2 x i32> <i32 0, i32 1>")

    def _looked_at(
        self, text: Template, function: str, type: str, buffer: BufferExtent, at: str, size: int, lanes: int, mask: str
    ) -> str:
        words = {"N": lanes, "ELSEWHERE": 8 * FaultEntry.SIZE, "RECORD": RECORD_WORD} | {
            entry.name: entry.value for entry in FaultEntry
        }
        # A line each, as a kernel may have one of these itself.
        self._to.declarations.update(_REDUCTIONS.substitute(words).splitlines())
        self._to.declarations.update(each.substitute(words) for each in (_OUTSIDE, text))
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
  %left = sub <$N x i64> %extents, %offset
  %fits = icmp uge <$N x i64> %left, %sizes
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
