"""Threads of a card in LLVM IR: their numbers, what they see of one another within a warp, and the module of kernels.

Kernels have one argument, a table by value. Intrinsics are those of LLVM's NVPTX: "User Guide for NVPTX Back-end";
what a shuffle does is said in the PTX ISA, `shfl.sync`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from engine.loops.assembly import Assembly
from engine.loops.cuda_text import LONG, WARP
from engine.loops.program import Loop

#: of the branch back of a loop: metadata of the module that has it left as it is
_LEFT_ROLLED: Final = ", !llvm.loop !0"
_TAIL: Final = """\
attributes #0 = { nounwind convergent "no-trapping-math"="true" }
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
"""
_ALL_LANES: Final = -1

GridAxis = Literal["x", "y"]


class CardFunction(NamedTuple):
    """A function of a module: its head without `define`, and its text, to its `ret`."""

    head: str
    to: Assembly


class Stride(NamedTuple):
    """Way of a thread through what all share: the first of its own, and how far it is to the next."""

    first: str
    step: str


class CardThreads:
    """The thread that runs a kernel, while this is written."""

    def __init__(self, to: Assembly) -> None:
        self._to = to

    def register(self, name: str) -> str:
        """A number of the grid, i64: tid, ntid, ctaid, nctaid, each along an axis, as in `tid.x`."""
        intrinsic = f"llvm.nvvm.read.ptx.sreg.{name}"
        self._to.declare("i32", intrinsic)
        return self._to.value(f"zext i32 {self._to.value(f'call i32 @{intrinsic}()')} to i64")

    def stride(self, axis: GridAxis) -> Stride:
        """Of each thread along an axis, one after the other."""
        return self.groups(axis, axis)

    def groups(self, blocks: GridAxis, threads: GridAxis, each: int = 1) -> Stride:
        """Of the threads of a block along one axis, in the blocks along another: each has so many side by side."""
        high = self.register(f"ntid.{threads}")
        before = self._to.value(f"mul i64 {self.register(f'ctaid.{blocks}')}, {high}")
        first = self._to.value(f"add i64 {before}, {self.register(f'tid.{threads}')}")
        step = self._to.value(f"mul i64 {self.register(f'nctaid.{blocks}')}, {high}")
        if each == 1:
            return Stride(first, step)
        return Stride(self._to.value(f"mul i64 {first}, {each}"), self._to.value(f"mul i64 {step}, {each}"))

    def is_first(self) -> str:
        """Whether it is the first one along x, of all blocks."""
        others = self._to.value(f"or i64 {self.register('ctaid.x')}, {self.register('tid.x')}")
        return self._to.value(f"icmp eq i64 {others}, 0")

    def from_above(self, value: str, by: int, width: int) -> str:
        """A float of the thread so many above it, of a group of `width`: its own, where there is none."""
        return self._from_lane("down", value, by, width)

    def from_first(self, value: str, width: int) -> str:
        """A float of the first thread of a group of `width`."""
        return self._from_lane("idx", value, 0, width)

    def _from_lane(self, mode: str, value: str, lane: int, width: int) -> str:
        """A shuffle, word by word. Its last operand has how wide a group is, and the last lane of a warp."""
        to, type = self._to, self._to.name("float")
        name, bounds = f"llvm.nvvm.shfl.sync.{mode}.i32", (WARP - width) << 8 | (WARP - 1)
        to.declare("i32", name, "i32", "i32", "i32", "i32")
        bits = to.value(f"bitcast {type} {value} to i{to.bits}")
        words = [bits]
        if to.bits == 64:
            words = [to.value(f"trunc i64 {part} to i32") for part in (bits, to.value(f"lshr i64 {bits}, 32"))]
        found = [to.value(f"call i32 @{name}(i32 {_ALL_LANES}, i32 {w}, i32 {lane}, i32 {bounds})") for w in words]
        if to.bits == 64:
            low, high = (to.value(f"zext i32 {word} to i64") for word in found)
            found = [to.value(f"or i64 {to.value(f'shl i64 {high}, 32')}, {low}")]
        return to.value(f"bitcast i{to.bits} {found[0]} to {type}")


def rolled(loop: Loop) -> str:
    """Metadata for the branch back of a loop over elements: long ones are not unrolled."""
    return _LEFT_ROLLED if len(loop.instructions) >= LONG else ""


def card_kernel(name: str, entries: int, to: Assembly) -> CardFunction:
    """A kernel of that name, whose table has so many entries."""
    to.line("ret void")
    return CardFunction(f"ptx_kernel void @{name}(ptr byval([{entries} x i64]) align 8 %table)", to)


def card_module(functions: Iterable[CardFunction]) -> str:
    """The module with all of them."""
    lines, declared = list[str](), set[str]()
    for head, to in functions:
        lines += [f"define {head} #0 {{", "entry:", *to.lines, "}"]
        declared |= to.declarations
    return "\n".join((*lines, *sorted(declared), _TAIL))
