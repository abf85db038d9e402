"""LLVM IR while it is written: values, labels and loops of a function, and the module about it.

It is written so that code can be generated from it as it stands: no optimisation of IR is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from string import Template
from typing import Final, NamedTuple

from engine.codegen.kernels.program import Scalars
from engine.codegen.native.native_call import LENGTH_WORD, RECORD_WORD, WATCHED, FaultEntry, first_word

_HEAD: Final = "define void @kernel(i64 %first, i64 %past, ptr noalias readonly %table) #0 {\nentry:"
#: no instruction of a kernel may trap, and vectors are as wide as the machine's
_ATTRIBUTES: Final = 'attributes #0 = { nounwind "prefer-vector-width"="512" "no-trapping-math"="true" }'


class LoopNames(NamedTuple):
    """Names of a loop's counter and labels; how its next counter is made, and is called, if by a name."""

    counter: str
    head: str
    body: str
    past: str
    more: str
    following: str = ""
    addition: str = "add"


class CarriedValue(NamedTuple):
    """A value that goes from one round of a loop to the next: its name there, its type, and what it is at first."""

    name: str
    type: str
    first: str


@dataclass(eq=False, slots=True)
class Assembly:
    """The text of `kernel(first, past, table)` while it is written, and what that calls. Floats are of one dtype."""

    dtype: str
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    #: label of the block that is being written
    block: str = "entry"
    _count: int = 0

    @property
    def bits(self) -> int:
        """Width of a float, and of an int."""
        return 32 if self.dtype == "float32" else 64

    @property
    def module(self) -> str:
        """Text of the module with the function, for the host's target."""
        body = (*self.lines, "  ret void\n}", *sorted(self.declarations), _ATTRIBUTES, "")
        return "\n".join((_HEAD, *body))

    # types

    def name(self, type: Scalars, lanes: int = 0) -> str:
        """Name a type in LLVM's words; a vector, if lanes are given. Pairs are a vector, their parts by turns."""
        if type == "pair":
            return self.name("float", 2 * (lanes or 1))
        scalar = {"float": "float" if self.bits == 32 else "double", "int": f"i{self.bits}", "bool": "i1"}[type]
        return f"<{lanes} x {scalar}>" if lanes else scalar

    def stored(self, type: Scalars, lanes: int = 0) -> str:
        """Name a type as it lies in memory: a bool is a byte."""
        return self.name(type, lanes).replace("i1", "i8") if type == "bool" else self.name(type, lanes)

    def suffix(self, type: Scalars, lanes: int = 0) -> str:
        """Name the suffix of an intrinsic on a type."""
        scalar = {"float": f"f{self.bits}", "int": f"i{self.bits}", "bool": "i8"}[type]
        return f"v{lanes}{scalar}" if lanes else scalar

    # values

    def line(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def value(self, text: str, name: str = "") -> str:
        """Write an instruction, and return the name of its result: a new one, unless it is given."""
        if not name:
            self._count += 1
            name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, result: str, function: str, *takes: str) -> None:
        """Declare a function that is called."""
        self.declarations.add(f"declare {result} @{function}({', '.join(takes)})")

    def least(self, a: int | str, b: int | str, name: str = "") -> str:
        """Write the smaller of two whole numbers."""
        is_less = self.value(f"icmp slt i64 {a}, {b}", name and f"{name}.is")
        return self.value(f"select i1 {is_less}, i64 {a}, i64 {b}", name)

    def splat(self, scalar: str, type: str, lanes: int) -> str:
        """Write a vector of one scalar, of a type in LLVM's words."""
        vector = f"<{lanes} x {type}>"
        first = self.value(f"insertelement {vector} poison, {type} {scalar}, i32 0")
        return self.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def shuffled(self, a: str, b: str, among: int, lanes: Sequence[int]) -> str:
        """Select these lanes of two vectors of floats, of `among` each."""
        vector, numbers = self.name("float", among), ", ".join(f"i32 {i}" for i in lanes)
        return self.value(f"shufflevector {vector} {a}, {vector} {b}, <{len(lanes)} x i32> <{numbers}>")

    def part(self, pairs: str, lanes: int, which: int) -> str:
        """Select the real parts of pairs, or for 1 the imaginary ones: a scalar, if there are no lanes."""
        if not lanes:
            return self.value(f"extractelement {self.name('pair')} {pairs}, i32 {which}")
        return self.shuffled(pairs, "poison", 2 * lanes, range(which, 2 * lanes, 2))

    def paired(self, re: str, im: str, lanes: int) -> str:
        """Make pairs of these parts."""
        if lanes:
            return self.shuffled(re, im, lanes, [part * lanes + i for i in range(lanes) for part in range(2)])
        type, float = self.name("pair"), self.name("float")
        first = self.value(f"insertelement {type} poison, {float} {re}, i32 0")
        return self.value(f"insertelement {type} {first}, {float} {im}, i32 1")

    def halved(self, vector: str, lanes: int, combined: Callable[[str, str, int], str]) -> str:
        """Combine the lanes of floats: the lower half with the upper one, until there is one."""
        while lanes > 1:
            whole, lanes = lanes, lanes // 2
            low, high = (self.shuffled(vector, "poison", whole, range(k, k + lanes)) for k in (0, lanes))
            vector = combined(low, high, lanes)
        return self.value(f"extractelement {self.name('float', 1)} {vector}, i32 0")

    # control

    def label(self, name: str) -> None:
        """Go on in a block of this name."""
        self.lines.append(f"  br label %{name}\n{name}:")
        self.block = name

    def branch(self, flag: str, then: str, other: str) -> None:
        """Go on in `then` if the flag holds, else in `other`."""
        self.lines.append(f"  br i1 {flag}, label %{then}, label %{other}\n{then}:")
        self.block = then

    @contextmanager
    def when(self, flag: str, then: str, past: str) -> Iterator[None]:
        """Run what is written inside, in a block `then`, if the flag holds."""
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
        """Write a loop over the numbers from `first` to before `past`; after it, `carried` are those of the last round.

        The list that is yielded takes the values of the next round. The branch back has the `metadata`.
        """
        before, given = self.block, list[str]()
        self.label(names.head)
        head = len(self.lines)
        self.branch(self.value(f"icmp slt i64 {names.counter}, {past}", names.more), names.body, names.past)
        yield given
        following = self.value(f"{names.addition} i64 {names.counter}, {step}", names.following)
        counter = CarriedValue(names.counter, "i64", str(first))
        self.lines[head:head] = [
            f"  {name} = phi {type} [ {start}, %{before} ], [ {value}, %{self.block} ]"
            for (name, type, start), value in zip((counter, *carried), (following, *given), strict=True)
        ]
        self.lines.append(f"  br label %{names.head}{metadata}\n{names.past}:")
        self.block = names.past


# Accesses of kernels to memory: every load and every store of theirs is printed here.
#
# A pointer comes out of the kernel's table, or is so many elements further than another one; so each is known to be of
# one buffer, and what is of none cannot be printed. A build with `WATCHED` compares each access with its buffer's
# extent.


class BufferExtent(NamedTuple):
    """Buffer of a pointer: the position in the table that it comes from; in a checked kernel, names of its bounds."""

    position: int
    first: str = ""
    past: str = ""


class BoundsWriter:
    """Writer of the checks of accesses, in a build for tests: lines of `%bounds.` names beside the kernel's text."""

    def __init__(self, to: Assembly) -> None:
        self._to = to
        self._count = 0

    def stated(self, position: int) -> BufferExtent:
        """Return the buffer at a position in the table, with the bounds that are stated in front of it."""
        return BufferExtent(position, self._word(-first_word(position)), self._word(-first_word(position) - 1))

    def table(self) -> BufferExtent:
        """Return the table itself as a buffer."""
        first = self._value("ptrtoint ptr %table to i64")
        return BufferExtent(-1, first, self._value(f"add i64 {first}, {self._word(-LENGTH_WORD)}"))

    def part(self, buffer: BufferExtent, pointer: str, count: str, size: int) -> BufferExtent:
        """Return the part of a buffer from a pointer on: so many elements of so many bytes, if it has as many."""
        first, nbytes = self._value(f"ptrtoint ptr {pointer} to i64"), self._value(f"mul i64 {count}, {size}")
        past = self._value(f"add i64 {first}, {nbytes}")
        is_more = self._value(f"icmp ugt i64 {past}, {buffer.past}")
        return BufferExtent(buffer.position, first, self._value(f"select i1 {is_more}, i64 {buffer.past}, i64 {past}"))

    def moved(self, buffer: BufferExtent, count: str, size: int) -> BufferExtent:
        """Return a buffer as large, so many elements of so many bytes further."""
        nbytes = self._value(f"mul i64 {count}, {size}")
        first, past = (self._value(f"add i64 {bound}, {nbytes}") for bound in (buffer.first, buffer.past))
        return BufferExtent(buffer.position, first, past)

    def bounded(self, buffer: BufferExtent, pointer: str, size: int, lanes: int, mask: str) -> str:
        """Return the pointer, or one elsewhere, unless all elements of `size` bytes inside the mask are in the buffer.

        There are as many as lanes, one behind the other.
        """
        if lanes == 1:
            lanes, mask = 2, self._one_of_two(mask)
        return self._looked_at(_BOUNDED, f"bounded.{lanes}", "ptr", buffer, pointer, size, lanes, mask)

    def each_bounded(self, buffer: BufferExtent, pointers: str, size: int, lanes: int, mask: str) -> str:
        """Check as `bounded` a vector of pointers with an element each."""
        if lanes == 1:
            both = self._value(f"shufflevector <1 x ptr> {pointers}, <1 x ptr> poison, <2 x i32> zeroinitializer")
            found = self.each_bounded(buffer, both, size, 2, self._one_of_two(mask))
            return self._value(f"shufflevector <2 x ptr> {found}, <2 x ptr> poison, <1 x i32> zeroinitializer")
        type = f"<{lanes} x ptr>"
        return self._looked_at(_EACH_BOUNDED, f"bounded.each.{lanes}", type, buffer, pointers, size, lanes, mask)

    def _one_of_two(self, mask: str) -> str:
        """Widen the mask of one lane to two, as a fault then says: LLVM 22 has no code for functions of <1 x i1>."""
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


#: types that intrinsics do not call by their names
_SUFFIXES: Final = {"float": "f32", "double": "f64"}


class KernelMemory:
    """The accesses of a kernel while it is written. Types are scalars in LLVM's words; lanes make vectors of them."""

    def __init__(self, to: Assembly, *, checkable: bool = True) -> None:
        """Check accesses if they are `checkable`, and the build checks any: not on a card."""
        self._to = to
        self._checks = BoundsWriter(to) if WATCHED.checked and checkable else None
        #: of each pointer, or vector of pointers, by name
        self._buffers: dict[str, BufferExtent] = {}

    # pointers

    def word(self, position: int, type: str, name: str = "", moved: str = "") -> str:
        """Load a word of the table: a number (i64), or the beginning of a buffer (ptr).

        `moved` is a value by which it stands further: only if accesses are not checked.
        """
        assert not (moved and self._checks)
        place = self._to.value(f"getelementptr i64, ptr %table, i64 {position}", name and f"{name}.in")
        if moved:
            place = self._to.value(f"getelementptr i64, ptr {place}, i64 {moved}")
        if self._checks:
            place = self._checks.bounded(self._checks.table(), place, 8, 1, "")
        found = self._to.value(f"load {type}, ptr {place}, align 8", name)
        return self.given(found, position) if type == "ptr" else found

    def given(self, pointer: str, position: int) -> str:
        """Register a pointer that a function is called with, into the buffer at a position of the table."""
        self._buffers[pointer] = self._checks.stated(position) if self._checks else BufferExtent(position)
        return pointer

    def further(self, pointer: str, type: str, index: int | str, name: str = "") -> str:
        """Write a pointer so many elements of a type further."""
        return self.same(self._to.value(f"getelementptr {type}, ptr {pointer}, i64 {index}", name), pointer)

    def entry(self, pointer: str, type: str, index: str) -> str:
        """Write a pointer to the same place in another entry, if the pointer's buffer is the first entry of several."""
        found = self.further(pointer, type, index)
        if self._checks:
            self._buffers[found] = self._checks.moved(self._buffers[pointer], index, _size(type))
        return found

    def each_further(self, pointer: str, lanes: int, offsets: str) -> str:
        """Write a vector of pointers, each so many bytes further: constants, or a vector of i64."""
        return self.same(self._to.value(f"getelementptr i8, ptr {pointer}, <{lanes} x i64> {offsets}"), pointer)

    def same(self, pointer: str, of: str) -> str:
        """Register a pointer that is of the same buffer as another."""
        self._buffers[pointer] = self._buffers[of]
        return pointer

    def part(self, pointer: str, type: str, count: str) -> None:
        """Bound the buffer of a pointer, which begins with it, to so many elements of a type."""
        if self._checks:
            self._buffers[pointer] = self._checks.part(self._buffers[pointer], pointer, count, _size(type))

    # accesses

    def load(self, type: str, pointer: str, lanes: int = 0, mask: str = "", outside: str = "zeroinitializer") -> str:
        """Load a scalar, or a vector: its lanes outside the mask are not read, and are those of `outside`."""
        pointer, taken, size = self._bounded(pointer, type, lanes, mask), _taken(type, lanes), _size(type)
        if not mask:
            return self._to.value(f"load {taken}, ptr {pointer}, align {size}")
        name = self._intrinsic(taken, f"load.{_suffix(type, lanes)}.p0", "ptr", "i32", _mask(lanes), taken)
        return self._to.value(
            f"call {taken} @{name}(ptr {pointer}, i32 {size}, {_mask(lanes)} {mask}, {taken} {outside})"
        )

    def store(
        self, type: str, value: str, pointer: str, lanes: int = 0, mask: str = "", *, says_align: bool = True
    ) -> None:
        """Write a scalar, or a vector, or its lanes inside the mask. An alignment that is not said is the type's."""
        pointer, taken, size = self._bounded(pointer, type, lanes, mask), _taken(type, lanes), _size(type)
        if not mask:
            self._to.line(f"store {taken} {value}, ptr {pointer}" + (f", align {size}" if says_align else ""))
            return
        name = self._intrinsic("void", f"store.{_suffix(type, lanes)}.p0", taken, "ptr", "i32", _mask(lanes))
        self._to.line(f"call void @{name}({taken} {value}, ptr {pointer}, i32 {size}, {_mask(lanes)} {mask})")

    def gather(self, type: str, pointers: str, lanes: int, mask: str, outside: str = "zeroinitializer") -> str:
        """Load a vector of what is at each pointer; lanes outside the mask as with `load`."""
        pointers, taken = self._each_bounded(pointers, type, lanes, mask), _taken(type, lanes)
        places = f"<{lanes} x ptr>"
        name = self._intrinsic(taken, f"gather.{_suffix(type, lanes)}.v{lanes}p0", places, "i32", _mask(lanes), taken)
        return self._to.value(
            f"call {taken} @{name}({places} {pointers}, i32 {_size(type)}, {_mask(lanes)} {mask}, {taken} {outside})"
        )

    def scatter(self, type: str, value: str, pointers: str, lanes: int, mask: str) -> None:
        """Write the lanes inside the mask, each to its pointer."""
        pointers, taken = self._each_bounded(pointers, type, lanes, mask), _taken(type, lanes)
        places = f"<{lanes} x ptr>"
        name = self._intrinsic("void", f"scatter.{_suffix(type, lanes)}.v{lanes}p0", taken, places, "i32", _mask(lanes))
        self._to.line(
            f"call void @{name}({taken} {value}, {places} {pointers}, i32 {_size(type)}, {_mask(lanes)} {mask})"
        )

    def _intrinsic(self, result: str, name: str, *takes: str) -> str:
        self._to.declare(result, f"llvm.masked.{name}", *takes)
        return f"llvm.masked.{name}"

    def _bounded(self, pointer: str, type: str, lanes: int, mask: str) -> str:
        """Return the pointer, checked if accesses are."""
        buffer, checks = self._buffers[pointer], self._checks
        return checks.bounded(buffer, pointer, _size(type), lanes or 1, mask) if checks else pointer

    def _each_bounded(self, pointers: str, type: str, lanes: int, mask: str) -> str:
        buffer, checks = self._buffers[pointers], self._checks
        return checks.each_bounded(buffer, pointers, _size(type), lanes, mask) if checks else pointers


def _taken(type: str, lanes: int) -> str:
    return f"<{lanes} x {type}>" if lanes else type


def _mask(lanes: int) -> str:
    return f"<{lanes} x i1>"


def _suffix(type: str, lanes: int) -> str:
    return f"v{lanes}{_SUFFIXES.get(type, type)}"


def _size(type: str) -> int:
    """Bytes of a scalar, that many it is aligned to; or of a vector of them."""
    if type.startswith("<"):
        count, _, each = type.strip("<>").partition(" x ")
        return int(count) * _size(each)
    return {"float": 4, "double": 8}.get(type) or int(type[1:]) // 8
