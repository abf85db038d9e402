"""An LLVM IR writer: values, labels and loops of a kernel's function, its memory accesses, and the module around it.

The text needs no optimisation passes: LLVM's code generator is applied to it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from string import Template
from typing import Final, NamedTuple

from engine.codegen.kernels.program import Scalars
from engine.codegen.native.native_call import BOUNDS, LENGTH_WORD, RECORD_WORD, FaultEntry, first_word

_HEAD: Final = "define void @kernel(i64 %first, i64 %past, ptr noalias readonly %table) #0 {\nentry:"
#: attributes of a kernel: floating-point instructions never trap, and vectors may use the full 512 bits
_ATTRIBUTES: Final = 'attributes #0 = { nounwind "prefer-vector-width"="512" "no-trapping-math"="true" }'


class LoopNames(NamedTuple):
    """Names of a loop's counter and labels, of the condition to continue, and of the next counter if it has a name."""

    counter: str
    head: str
    body: str
    past: str
    more: str
    following: str = ""
    addition: str = "add"


class CarriedValue(NamedTuple):
    """Value passed from one iteration of a loop to the next (a phi): its name, its type, and its first value."""

    name: str
    type: str
    first: str


@dataclass(eq=False, slots=True)
class Assembly:
    """The text of `kernel(first, past, table)` under construction, and its declarations. Floats have one dtype."""

    dtype: str
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    #: label of the current basic block
    block: str = "entry"
    _count: int = 0

    @property
    def bits(self) -> int:
        """Width of a float and of an int in bits."""
        return 32 if self.dtype == "float32" else 64

    @property
    def module(self) -> str:
        """Text of the module with the function, without a target."""
        body = (*self.lines, "  ret void\n}", *sorted(self.declarations), _ATTRIBUTES, "")
        return "\n".join((_HEAD, *body))

    # types

    def name(self, type: Scalars, lanes: int = 0) -> str:
        """Return a type's LLVM name; a vector if lanes are given. Pairs are interleaved real and imaginary parts."""
        if type == "pair":
            return self.name("float", 2 * (lanes or 1))
        scalar = {"float": "float" if self.bits == 32 else "double", "int": f"i{self.bits}", "bool": "i1"}[type]
        return f"<{lanes} x {scalar}>" if lanes else scalar

    def stored(self, type: Scalars, lanes: int = 0) -> str:
        """Return the LLVM name of a type in memory, where a bool is a byte."""
        return self.name(type, lanes).replace("i1", "i8") if type == "bool" else self.name(type, lanes)

    def suffix(self, type: Scalars, lanes: int = 0) -> str:
        """Return the suffix of an intrinsic for a type."""
        scalar = {"float": f"f{self.bits}", "int": f"i{self.bits}", "bool": "i8"}[type]
        return f"v{lanes}{scalar}" if lanes else scalar

    # values

    def line(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def value(self, text: str, name: str = "") -> str:
        """Write an instruction; return the name of its result, a new one unless it is given."""
        if not name:
            self._count += 1
            name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, result: str, function: str, *takes: str) -> None:
        """Declare an external function."""
        self.declarations.add(f"declare {result} @{function}({', '.join(takes)})")

    def minimum(self, a: int | str, b: int | str, name: str = "") -> str:
        """Write the minimum of two integers."""
        is_less = self.value(f"icmp slt i64 {a}, {b}", name and f"{name}.is")
        return self.value(f"select i1 {is_less}, i64 {a}, i64 {b}", name)

    def splat(self, scalar: str, type: str, lanes: int) -> str:
        """Broadcast a scalar, of a type in LLVM's words, to a vector."""
        vector = f"<{lanes} x {type}>"
        first = self.value(f"insertelement {vector} poison, {type} {scalar}, i32 0")
        return self.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def shuffled(self, a: str, b: str, width: int, lanes: Sequence[int]) -> str:
        """Select lanes of two vectors of floats, of `width` lanes each."""
        vector, numbers = self.name("float", width), ", ".join(f"i32 {i}" for i in lanes)
        return self.value(f"shufflevector {vector} {a}, {vector} {b}, <{len(lanes)} x i32> <{numbers}>")

    def part(self, pairs: str, lanes: int, which: int) -> str:
        """Select the real parts of pairs, or the imaginary parts if `which` is 1; without lanes, a scalar."""
        if not lanes:
            return self.value(f"extractelement {self.name('pair')} {pairs}, i32 {which}")
        return self.shuffled(pairs, "poison", 2 * lanes, range(which, 2 * lanes, 2))

    def paired(self, re: str, im: str, lanes: int) -> str:
        """Interleave real and imaginary parts to pairs."""
        if lanes:
            return self.shuffled(re, im, lanes, [part * lanes + i for i in range(lanes) for part in range(2)])
        type, float = self.name("pair"), self.name("float")
        first = self.value(f"insertelement {type} poison, {float} {re}, i32 0")
        return self.value(f"insertelement {type} {first}, {float} {im}, i32 1")

    def halved(self, vector: str, lanes: int, combined: Callable[[str, str, int], str]) -> str:
        """Reduce a vector of floats to a scalar: combine its lower half with its upper half until one lane remains."""
        while lanes > 1:
            whole, lanes = lanes, lanes // 2
            low, high = (self.shuffled(vector, "poison", whole, range(k, k + lanes)) for k in (0, lanes))
            vector = combined(low, high, lanes)
        return self.value(f"extractelement {self.name('float', 1)} {vector}, i32 0")

    # control

    def label(self, name: str) -> None:
        """End the current block with a branch to a new block, and continue there."""
        self.lines.append(f"  br label %{name}\n{name}:")
        self.block = name

    def branch(self, flag: str, then: str, other: str) -> None:
        """Branch to `then` if the flag is set, else to `other`; continue in `then`."""
        self.lines.append(f"  br i1 {flag}, label %{then}, label %{other}\n{then}:")
        self.block = then

    @contextmanager
    def when(self, flag: str, then: str, past: str) -> Iterator[None]:
        """Run the instructions written inside, in a block `then`, if the flag is set."""
        self.branch(flag, then, past)
        yield
        self.label(past)

    @contextmanager
    def loop(
        self,
        names: LoopNames,
        first: int | str,
        past: int | str,
        step: int | str = 1,
        carried: Sequence[CarriedValue] = (),
        metadata: str = "",
    ) -> Iterator[list[str]]:
        """Write a loop over the integers from `first` to before `past`.

        Inside, append to the yielded list the values of the next iteration. After the loop, the names of `carried` hold
        the final values. The branch back to the head has the `metadata`.
        """
        before, next_values = self.block, list[str]()
        self.label(names.head)
        head = len(self.lines)
        self.branch(self.value(f"icmp slt i64 {names.counter}, {past}", names.more), names.body, names.past)
        yield next_values
        following = self.value(f"{names.addition} i64 {names.counter}, {step}", names.following)
        counter = CarriedValue(names.counter, "i64", str(first))
        # Phis belong to the head of the loop, but name values and a block that exist only after its body is written.
        self.lines[head:head] = [
            f"  {name} = phi {type} [ {start}, %{before} ], [ {value}, %{self.block} ]"
            for (name, type, start), value in zip((counter, *carried), (following, *next_values), strict=True)
        ]
        self.lines.append(f"  br label %{names.head}{metadata}\n{names.past}:")
        self.block = names.past


# Memory accesses: every load and store of a kernel is printed here.
#
# A pointer is either loaded from the kernel's table or derived from another pointer by an offset. So the buffer of each
# pointer is known, and an access outside any buffer cannot be printed. If `BOUNDS` checks accesses, each is compared
# with the bounds of its buffer.


class BufferExtent(NamedTuple):
    """Buffer of a pointer: its position in the table; in a checked kernel, also the names of its bounds."""

    position: int
    first: str = ""
    past: str = ""


class BoundsWriter:
    """Writer of bounds checks in a test build, as lines with `%bounds.` names among the kernel's text."""

    def __init__(self, ir: Assembly) -> None:
        self._ir = ir
        self._count = 0

    def stated(self, position: int) -> BufferExtent:
        """Return the buffer at a position of the table, with the bounds stored in front of the table."""
        return BufferExtent(position, self._word(-first_word(position)), self._word(-first_word(position) - 1))

    def table(self) -> BufferExtent:
        """Return the table itself as a buffer."""
        first = self._value("ptrtoint ptr %table to i64")
        return BufferExtent(-1, first, self._value(f"add i64 {first}, {self._word(-LENGTH_WORD)}"))

    def part(self, buffer: BufferExtent, pointer: str, count: str, size: int) -> BufferExtent:
        """Return a buffer's part from a pointer on: `count` elements of `size` bytes, or the rest of the buffer."""
        first, nbytes = self._value(f"ptrtoint ptr {pointer} to i64"), self._value(f"mul i64 {count}, {size}")
        past = self._value(f"add i64 {first}, {nbytes}")
        is_more = self._value(f"icmp ugt i64 {past}, {buffer.past}")
        return BufferExtent(buffer.position, first, self._value(f"select i1 {is_more}, i64 {buffer.past}, i64 {past}"))

    def moved(self, buffer: BufferExtent, count: str, size: int) -> BufferExtent:
        """Return a buffer of the same size, `count` elements of `size` bytes further."""
        nbytes = self._value(f"mul i64 {count}, {size}")
        first, past = (self._value(f"add i64 {bound}, {nbytes}") for bound in (buffer.first, buffer.past))
        return BufferExtent(buffer.position, first, past)

    def bounded(self, buffer: BufferExtent, pointer: str, size: int, lanes: int, mask: str) -> str:
        """Return the pointer, or one to the dummy area if an element inside the mask is outside the buffer.

        There are `lanes` consecutive elements of `size` bytes.
        """
        if lanes == 1:
            lanes, mask = 2, self._one_of_two(mask)
        return self._checked(_BOUNDED, f"bounded.{lanes}", "ptr", buffer, pointer, size, lanes, mask)

    def each_bounded(self, buffer: BufferExtent, pointers: str, size: int, lanes: int, mask: str) -> str:
        """Check a vector of pointers, with one element each, as `bounded` does."""
        if lanes == 1:
            doubled = self._value(f"shufflevector <1 x ptr> {pointers}, <1 x ptr> poison, <2 x i32> zeroinitializer")
            checked = self.each_bounded(buffer, doubled, size, 2, self._one_of_two(mask))
            return self._value(f"shufflevector <2 x ptr> {checked}, <2 x ptr> poison, <1 x i32> zeroinitializer")
        type = f"<{lanes} x ptr>"
        return self._checked(_EACH_BOUNDED, f"bounded.each.{lanes}", type, buffer, pointers, size, lanes, mask)

    def _one_of_two(self, mask: str) -> str:
        """Widen the mask of one lane to two; a fault then reports two. LLVM 22 cannot compile functions of <1 x i1>."""
        inside = mask or "splat (i1 true)"
        return self._value(f"shufflevector <1 x i1> {inside}, <1 x i1> zeroinitializer, <2 x i32> <i32 0, i32 1>")

    def _checked(
        self,
        text: Template,
        function: str,
        type: str,
        buffer: BufferExtent,
        pointer: str,
        size: int,
        lanes: int,
        mask: str,
    ) -> str:
        words = {"N": lanes, "ELSEWHERE": 8 * FaultEntry.SIZE, "RECORD": RECORD_WORD} | {
            entry.name: entry.value for entry in FaultEntry
        }
        # Declare line by line: the set then merges declarations that the kernel has itself.
        self._ir.declarations.update(_REDUCTIONS.substitute(words).splitlines())
        self._ir.declarations.update(each.substitute(words) for each in (_OUTSIDE, text))
        which = f"i64 {buffer.first}, i64 {buffer.past}, i64 {buffer.position}, i64 {self._count + 1}, ptr %table"
        inside = mask or "splat (i1 true)"
        return self._value(f"call {type} @{function}({type} {pointer}, <{lanes} x i1> {inside}, i64 {size}, {which})")

    def _word(self, position: int) -> str:
        return self._value(f"load i64, ptr {self._value(f'getelementptr i64, ptr %table, i64 {position}')}, align 8")

    def _value(self, text: str) -> str:
        self._count += 1
        return self._ir.value(text, f"%bounds.{self._count}")


_REDUCTIONS: Final = Template("""\
declare i1 @llvm.vector.reduce.or.v${N}i1(<$N x i1>)
declare i64 @llvm.vector.reduce.smax.v${N}i64(<$N x i64>)
""")

#: mask of the elements at these addresses that are outside the buffer; the first fault of a process is recorded
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


#: suffixes of types in names of intrinsics, if they differ from the types' names
_SUFFIXES: Final = {"float": "f32", "double": "f64"}


class KernelMemory:
    """Memory accesses of a kernel under construction. Types are LLVM's scalar types; lanes make them vectors."""

    def __init__(self, ir: Assembly, *, checkable: bool = True) -> None:
        """Check accesses if they are `checkable` (not on a GPU) and this build checks accesses."""
        self._ir = ir
        self._checks = BoundsWriter(ir) if BOUNDS.checked and checkable else None
        #: buffers of pointers, or of vectors of pointers, by name
        self._buffers: dict[str, BufferExtent] = {}

    # pointers

    def word(self, position: int, type: str, name: str = "", moved: str = "") -> str:
        """Load a word of the table: an integer (i64) or the address of a buffer (ptr).

        `moved` is an offset in words, known at run time, added to `position`; only if accesses are not checked.
        """
        assert not (moved and self._checks)
        pointer = self._ir.value(f"getelementptr i64, ptr %table, i64 {position}", name and f"{name}.in")
        if moved:
            pointer = self._ir.value(f"getelementptr i64, ptr {pointer}, i64 {moved}")
        if self._checks:
            pointer = self._checks.bounded(self._checks.table(), pointer, 8, 1, "")
        value = self._ir.value(f"load {type}, ptr {pointer}, align 8", name)
        return self.given(value, position) if type == "ptr" else value

    def given(self, pointer: str, position: int) -> str:
        """Register a pointer that a function is called with, as one into the buffer at a position of the table."""
        self._buffers[pointer] = self._checks.stated(position) if self._checks else BufferExtent(position)
        return pointer

    def offset(self, pointer: str, type: str, index: int | str, name: str = "") -> str:
        """Write a pointer `index` elements of a type further."""
        return self.same(self._ir.value(f"getelementptr {type}, ptr {pointer}, i64 {index}", name), pointer)

    def entry(self, pointer: str, type: str, index: str) -> str:
        """Write a pointer to the same place in another entry; the pointer's buffer is the first of several entries."""
        moved = self.offset(pointer, type, index)
        if self._checks:
            self._buffers[moved] = self._checks.moved(self._buffers[pointer], index, _size(type))
        return moved

    def each_further(self, pointer: str, lanes: int, offsets: str) -> str:
        """Write a vector of pointers at byte offsets: constants, or a vector of i64."""
        return self.same(self._ir.value(f"getelementptr i8, ptr {pointer}, <{lanes} x i64> {offsets}"), pointer)

    def same(self, pointer: str, origin: str) -> str:
        """Register a pointer into the same buffer as `origin`."""
        self._buffers[pointer] = self._buffers[origin]
        return pointer

    def part(self, pointer: str, type: str, count: str) -> None:
        """Restrict the buffer of a pointer to `count` elements of a type, starting at the pointer."""
        if self._checks:
            self._buffers[pointer] = self._checks.part(self._buffers[pointer], pointer, count, _size(type))

    # accesses

    def load(self, type: str, pointer: str, lanes: int = 0, mask: str = "", outside: str = "zeroinitializer") -> str:
        """Load a scalar or a vector. Lanes outside the mask are not read and take the lanes of `outside`."""
        pointer, result_type, size = self._bounded(pointer, type, lanes, mask), _vector_type(type, lanes), _size(type)
        if not mask:
            return self._ir.value(f"load {result_type}, ptr {pointer}, align {size}")
        name = self._intrinsic(result_type, f"load.{_suffix(type, lanes)}.p0", "ptr", "i32", _mask(lanes), result_type)
        return self._ir.value(
            f"call {result_type} @{name}(ptr {pointer}, i32 {size}, {_mask(lanes)} {mask}, {result_type} {outside})"
        )

    def store(
        self, type: str, value: str, pointer: str, lanes: int = 0, mask: str = "", *, says_align: bool = True
    ) -> None:
        """Store a scalar, a vector, or the lanes of a vector inside the mask, aligned like the scalar type."""
        pointer, value_type, size = self._bounded(pointer, type, lanes, mask), _vector_type(type, lanes), _size(type)
        if not mask:
            self._ir.line(f"store {value_type} {value}, ptr {pointer}" + (f", align {size}" if says_align else ""))
            return
        name = self._intrinsic("void", f"store.{_suffix(type, lanes)}.p0", value_type, "ptr", "i32", _mask(lanes))
        self._ir.line(f"call void @{name}({value_type} {value}, ptr {pointer}, i32 {size}, {_mask(lanes)} {mask})")

    def gather(self, type: str, pointers: str, lanes: int, mask: str, outside: str = "zeroinitializer") -> str:
        """Load a vector of the elements at each pointer, with lanes outside the mask as in `load`."""
        pointers, vector = self._each_bounded(pointers, type, lanes, mask), _vector_type(type, lanes)
        places = f"<{lanes} x ptr>"
        name = self._intrinsic(vector, f"gather.{_suffix(type, lanes)}.v{lanes}p0", places, "i32", _mask(lanes), vector)
        return self._ir.value(
            f"call {vector} @{name}({places} {pointers}, i32 {_size(type)}, {_mask(lanes)} {mask}, {vector} {outside})"
        )

    def scatter(self, type: str, value: str, pointers: str, lanes: int, mask: str) -> None:
        """Store the lanes inside the mask, each to its own pointer."""
        pointers, vector = self._each_bounded(pointers, type, lanes, mask), _vector_type(type, lanes)
        places = f"<{lanes} x ptr>"
        name = self._intrinsic(
            "void", f"scatter.{_suffix(type, lanes)}.v{lanes}p0", vector, places, "i32", _mask(lanes)
        )
        self._ir.line(
            f"call void @{name}({vector} {value}, {places} {pointers}, i32 {_size(type)}, {_mask(lanes)} {mask})"
        )

    def _intrinsic(self, result: str, name: str, *takes: str) -> str:
        self._ir.declare(result, f"llvm.masked.{name}", *takes)
        return f"llvm.masked.{name}"

    def _bounded(self, pointer: str, type: str, lanes: int, mask: str) -> str:
        """Return the pointer, checked if this build checks accesses."""
        buffer, checks = self._buffers[pointer], self._checks
        return checks.bounded(buffer, pointer, _size(type), lanes or 1, mask) if checks else pointer

    def _each_bounded(self, pointers: str, type: str, lanes: int, mask: str) -> str:
        buffer, checks = self._buffers[pointers], self._checks
        return checks.each_bounded(buffer, pointers, _size(type), lanes, mask) if checks else pointers


def _vector_type(type: str, lanes: int) -> str:
    return f"<{lanes} x {type}>" if lanes else type


def _mask(lanes: int) -> str:
    return f"<{lanes} x i1>"


def _suffix(type: str, lanes: int) -> str:
    return f"v{lanes}{_SUFFIXES.get(type, type)}"


def _size(type: str) -> int:
    """Return the bytes of a scalar, which are also its alignment, or of a vector."""
    if type.startswith("<"):
        count, _, element = type.strip("<>").partition(" x ")
        return int(count) * _size(element)
    return {"float": 4, "double": 8}.get(type) or int(type[1:]) // 8
