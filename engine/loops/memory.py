"""Accesses of kernels to memory: every load and every store of theirs is printed here.

A pointer comes out of the kernel's table, or is so many elements further than another one; so each is known to be of
one buffer, and what is of none cannot be printed. A build with `WATCHED` compares each access with its buffer's extent.
"""

from __future__ import annotations

from typing import Final

from engine.loops.assembly import Assembly
from engine.loops.bounds_writer import BoundsWriter, BufferExtent
from engine.native.bounds import WATCHED

#: what intrinsics call types that they do not call by their names
_SUFFIXES: Final = {"float": "f32", "double": "f64"}


class KernelMemory:
    """The accesses of a kernel while it is written. Types are scalars in LLVM's words; lanes make vectors of them."""

    def __init__(self, to: Assembly, *, checkable: bool = True) -> None:
        """What is `checkable` is bound with the extents of its buffers, where these are checked: not on a card."""
        self._to = to
        self._checks = BoundsWriter(to) if WATCHED.checked and checkable else None
        #: of each pointer, or vector of pointers, by name
        self._buffers: dict[str, BufferExtent] = {}

    # pointers

    def word(self, position: int, type: str, name: str = "", moved: str = "") -> str:
        """What stands in the table: a number (i64), or where a buffer begins (ptr).

        `moved` is by how many words further it stands, a value: only where accesses are not checked.
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
        """A pointer that a function is called with, into the buffer at a position of the table."""
        self._buffers[pointer] = self._checks.stated(position) if self._checks else BufferExtent(position)
        return pointer

    def further(self, pointer: str, type: str, index: int | str, name: str = "") -> str:
        """A pointer so many elements of a type further."""
        return self.same(self._to.value(f"getelementptr {type}, ptr {pointer}, i64 {index}", name), pointer)

    def entry(self, pointer: str, type: str, index: str) -> str:
        """As `further`, to the same place in another entry of what the pointer's buffer is the first entry of."""
        found = self.further(pointer, type, index)
        if self._checks:
            self._buffers[found] = self._checks.moved(self._buffers[pointer], index, _size(type))
        return found

    def each_further(self, pointer: str, lanes: int, offsets: str) -> str:
        """A vector of pointers, each so many bytes further: constants, or a vector of i64."""
        return self.same(self._to.value(f"getelementptr i8, ptr {pointer}, <{lanes} x i64> {offsets}"), pointer)

    def same(self, pointer: str, of: str) -> str:
        """A pointer that is of the same buffer as another."""
        self._buffers[pointer] = self._buffers[of]
        return pointer

    def part(self, pointer: str, type: str, count: str) -> None:
        """From now on, a pointer is of a buffer that begins with it, and has so many elements of a type."""
        if self._checks:
            self._buffers[pointer] = self._checks.part(self._buffers[pointer], pointer, count, _size(type))

    # accesses

    def load(self, type: str, pointer: str, lanes: int = 0, mask: str = "", outside: str = "zeroinitializer") -> str:
        """A scalar, or a vector: its lanes outside the mask are not read, and are those of `outside`."""
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
        """A vector of what is at each pointer; lanes outside the mask as with `load`."""
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
        """The pointer, where what is accessed is of its buffer."""
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
