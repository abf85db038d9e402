"""A kernel routine under construction: integers with constant folding, loops with carried values, vectors, and masks.

Offsets are in bytes. An integer is a Python int if it is known when the kernel is written, else the name of an i64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from engine.codegen.kernels.assembly import Assembly, CarriedValue, KernelMemory, LoopNames
from engine.codegen.kernels.llvm_text import literal
from engine.codegen.microkernels.recipe import KernelPhase, PlaceKind, TableEntryOf

Int64 = int | str

#: bytes of an element → float type in which elements of this size are moved, whatever their bits mean
MOVED_AS: Final = {4: "float32", 8: "float64"}
#: largest number of lanes of a vector
MOST_LANES: Final = 16


@dataclass(eq=False, slots=True)
class LoopBody:
    """Body of a loop: its index, the values carried into an iteration, and in `carry` those for the next."""

    index: str
    carried: list[str]
    carry: list[str] = field(default_factory=list)


class Routine:
    """The text of `kernel(first, past, table)`, with floats of one dtype in vectors of `lanes`."""

    def __init__(self, dtype: str, lanes: int) -> None:
        self.assembly = Assembly(dtype)
        self.memory = KernelMemory(self.assembly)
        self.lanes = lanes
        self.places: list[TableEntryOf] = []
        self._names = 0

    @property
    def size(self) -> int:
        """Bytes of a float."""
        return self.assembly.bits // 8

    @property
    def number(self) -> str:
        """The LLVM type of a float."""
        return self.assembly.name("float")

    @property
    def vector(self) -> str:
        """The LLVM type of a vector."""
        return self.assembly.name("float", self.lanes)

    def phase(self, items: int, work: int) -> KernelPhase:
        """Return the kernel that has been written."""
        return KernelPhase(self.assembly.module, items, tuple(self.places), work)

    # integers

    def add(self, a: Int64, b: Int64) -> Int64:
        """Write a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return b if a == 0 else a if b == 0 else self.assembly.value(f"add nsw i64 {a}, {b}")

    def sub(self, a: Int64, b: Int64) -> Int64:
        """Write a − b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.assembly.value(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Int64, b: int) -> Int64:
        """Write a · b."""
        if isinstance(a, int):
            return a * b
        return 0 if b == 0 else a if b == 1 else self.assembly.value(f"mul nsw i64 {a}, {b}")

    def divided(self, a: Int64, b: int) -> tuple[Int64, Int64]:
        """Write the quotient and remainder of a ≥ 0."""
        if isinstance(a, int):
            return divmod(a, b)
        if b == 1:
            return a, 0
        quotient = self.assembly.value(f"udiv i64 {a}, {b}")
        return quotient, self.sub(a, self.mul(quotient, b))

    def unravelled(self, a: Int64, extents: Sequence[int]) -> list[Int64]:
        """Write the index tuple of a flat index a ≥ 0, in row-major order."""
        if not extents:
            return []
        indices: list[Int64] = []
        for extent in reversed(extents[1:]):
            a, index = self.divided(a, extent)
            indices.append(index)
        return [a, *reversed(indices)]

    def minimum(self, a: Int64, b: Int64) -> Int64:
        """Write the minimum of two integers."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.assembly.minimum(a, b)

    def maximum(self, a: Int64, b: Int64) -> Int64:
        """Write the maximum of two integers."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        is_more = self.assembly.value(f"icmp sgt i64 {a}, {b}")
        return self.assembly.value(f"select i1 {is_more}, i64 {a}, i64 {b}")

    def within(self, a: Int64, extent: int) -> Int64:
        """Write 1 if 0 ≤ a < extent, else 0."""
        if isinstance(a, int):
            return int(0 <= a < extent)
        # A negative number is a large one without sign, so one unsigned comparison checks both bounds.
        is_within = self.assembly.value(f"icmp ult i64 {a}, {extent}")
        return self.assembly.value(f"zext i1 {is_within} to i64")

    def both_hold(self, one: tuple[str, Int64, Int64], other: tuple[str, Int64, Int64]) -> Int64:
        """Write 1 if both comparisons hold, else 0."""
        first, second = (self.assembly.value(f"icmp {how} i64 {a}, {b}") for how, a, b in (one, other))
        return self.assembly.value(f"zext i1 {self.assembly.value(f'and i1 {first}, {second}')} to i64")

    # memory

    def place(self, kind: PlaceKind, number: int, nbytes: int = 0) -> str:
        """Load the address of an operand, a result, or of `nbytes` of workspace; see `TableEntryOf`."""
        place = TableEntryOf(kind, number, nbytes)
        if place not in self.places:
            self.places.append(place)
        return self.memory.word(self.places.index(place), "ptr")

    def at(self, pointer: str, offset: Int64) -> str:
        """Write a pointer `offset` bytes further."""
        return pointer if offset == 0 else self.memory.offset(pointer, "i8", offset)

    def moved(self, pointer: str, indices: Sequence[Int64], steps: Sequence[int]) -> str:
        """Write a pointer advanced by each index times its step."""
        for index, step in zip(indices, steps, strict=True):
            pointer = self.at(pointer, self.mul(index, step))
        return pointer

    def load(self, pointer: str, mask: str = "", outside: str = "zeroinitializer") -> str:
        """Load a vector. Lanes outside the mask are not read and take the lanes of `outside`."""
        return self.memory.load(self.number, pointer, self.lanes, mask, outside)

    def store(self, value: str, pointer: str, mask: str = "") -> None:
        """Store a vector, or its lanes inside the mask."""
        self.memory.store(self.number, value, pointer, self.lanes, mask)

    def gather(self, pointer: str, step: int, mask: str, outside: str = "zeroinitializer") -> str:
        """Load a vector of numbers `step` bytes apart, with lanes outside the mask as in `load`."""
        return self.memory.gather(self.number, self._strided_pointers(pointer, step), self.lanes, mask, outside)

    def load_row(self, pointer: str, step: int, mask: str) -> str:
        """Load a vector of numbers `step` bytes apart. Those outside the mask are not read and are 0."""
        if step == self.size:
            return self.load(pointer, mask)
        return self.gather(pointer, step, mask or self.first(self.lanes))

    def store_row(self, value: str, pointer: str, step: int, mask: str) -> None:
        """Store the lanes inside the mask `step` bytes apart."""
        if step == self.size:
            self.store(value, pointer, mask)
        else:
            self.scatter(value, pointer, step, mask or self.first(self.lanes))

    def load_strided(self, pointer: str, step: int) -> str:
        """Load a vector of numbers `step` bytes apart, if the numbers between, up to the next vector, may be read, too.

        For every second number, it loads two whole vectors and selects the even lanes: faster than a gather.
        """
        if step == self.size:
            return self.load(pointer)
        if step != 2 * self.size:
            return self.gather(pointer, step, self.first(self.lanes))
        halves = [self.load(self.at(pointer, k * self.lanes * self.size)) for k in (0, 1)]
        return self.shuffled(halves[0], halves[1], range(0, 2 * self.lanes, 2))

    def scatter(self, value: str, pointer: str, step: int, mask: str) -> None:
        """Store the lanes inside the mask `step` bytes apart."""
        self.memory.scatter(self.number, value, self._strided_pointers(pointer, step), self.lanes, mask)

    def _strided_pointers(self, pointer: str, step: int) -> str:
        offsets = ", ".join(f"i64 {lane * step}" for lane in range(self.lanes))
        return self.memory.each_further(pointer, self.lanes, f"<{offsets}>")

    def load_number(self, pointer: str) -> str:
        """Load one number."""
        return self.memory.load(self.number, pointer)

    def address(self, pointer: str) -> str:
        """Convert a pointer to an integer."""
        return self.assembly.value(f"ptrtoint ptr {pointer} to i64")

    def store_number(self, value: str, pointer: str) -> None:
        """Store one number."""
        self.memory.store(self.number, value, pointer)

    def broadcast(self, pointer: str) -> str:
        """Load one number into all lanes."""
        return self.assembly.splat(self.load_number(pointer), self.number, self.lanes)

    # vectors

    @property
    def zero(self) -> str:
        """A vector of zeros."""
        return "zeroinitializer"

    def splat(self, number: float) -> str:
        """Return a vector of a constant."""
        return f"splat ({self.assembly.name('float')} {literal(number, 'float')})"

    def fma(self, a: str, b: str, c: str) -> str:
        """Write a · b + c, rounded once."""
        name = f"llvm.fma.{self.assembly.suffix('float', self.lanes)}"
        self.assembly.declare(self.vector, name, *[self.vector] * 3)
        return self.assembly.value(
            f"call {self.vector} @{name}({self.vector} {a}, {self.vector} {b}, {self.vector} {c})"
        )

    def sum(self, a: str, b: str) -> str:
        """Write a + b."""
        return self.assembly.value(f"fadd {self.vector} {a}, {b}")

    def halved(self, vector: str) -> str:
        """Add up the lanes: the lower half plus the upper half, until one number remains."""
        return self.assembly.halved(vector, self.lanes, self._sum_of_halves)

    def _sum_of_halves(self, low: str, high: str, lanes: int) -> str:
        return self.assembly.value(f"fadd {self.assembly.name('float', lanes)} {low}, {high}")

    def reversed(self, vector: str) -> str:
        """Reverse the lanes."""
        return self.shuffled(vector, "poison", range(self.lanes - 1, -1, -1))

    def transposed(self, rows: Sequence[str]) -> list[str]:
        """Transpose a square of vectors by exchanging off-diagonal blocks, of 1 lane, then 2, 4, …."""
        vectors, h, n = list(rows), 1, self.lanes
        while h < n:
            low = [lane if not lane & h else n + (lane ^ h) for lane in range(n)]
            high = [(lane | h) if not lane & h else n + lane for lane in range(n)]
            for i in range(n):
                if not i & h:
                    both = vectors[i], vectors[i | h]
                    vectors[i], vectors[i | h] = self.shuffled(*both, low), self.shuffled(*both, high)
            h *= 2
        return vectors

    def shuffled(self, a: str, b: str, lanes: Sequence[int]) -> str:
        """Select lanes of two vectors."""
        return self.assembly.shuffled(a, b, self.lanes, lanes)

    # masks

    @property
    def _mask(self) -> str:
        return f"<{self.lanes} x i1>"

    def below(self, count: Int64) -> str:
        """Return the mask of the first `count` lanes: none if negative, all if it is large enough; "" means all."""
        if isinstance(count, int):
            return "" if count >= self.lanes else self.first(count)
        return self.between(0, count)

    def first(self, count: int) -> str:
        """Return the constant mask of the first `count` lanes; explicit even for all lanes."""
        return _mask_of([lane < count for lane in range(self.lanes)])

    def last(self, count: int) -> str:
        """Return the constant mask of the last `count` lanes."""
        return _mask_of([lane >= self.lanes - count for lane in range(self.lanes)])

    def between(self, first: Int64, past: Int64, step: int = 1) -> str:
        """Return the mask of the lanes whose number times `step` is from `first` to before `past`; "" means all.

        Both bounds may be outside the vector.
        """
        if isinstance(first, int) and isinstance(past, int):
            inside = [first <= lane * step < past for lane in range(self.lanes)]
            return "" if all(inside) else _mask_of(inside)
        # Lane numbers are compared as 32-bit integers, since a register holds twice as many of them as of 64-bit
        # integers. Bounds may not fit 32 bits, so they are clamped first.
        clamp = self.lanes * step
        words = f"<{self.lanes} x i32>"
        numbers = f"<{', '.join(f'i32 {lane * step}' for lane in range(self.lanes))}>"
        under = self.assembly.value(f"icmp slt {words} {numbers}, {self._spread(self.minimum(past, clamp))}")
        if first == 0:
            return under
        over = self.assembly.value(f"icmp sge {words} {numbers}, {self._spread(self.maximum(first, -clamp))}")
        return self.both(under, over)

    def all_or_none(self, flag: Int64) -> str:
        """Return the mask of all lanes if the flag is not 0, else of none."""
        return self.below(self.mul(flag, self.lanes))

    def both(self, a: str, b: str) -> str:
        """Return the intersection of two masks; "" means all lanes."""
        if not a or not b:
            return a or b
        return self.assembly.value(f"and {self._mask} {a}, {b}")

    def _spread(self, number: Int64) -> str:
        """Broadcast an integer of at most a few times the number of lanes; very negative ones are clamped."""
        if isinstance(number, int):
            return f"splat (i32 {number})"
        return self.assembly.splat(
            self.assembly.value(f"trunc i64 {self.maximum(number, -(1 << 30))} to i32"), "i32", self.lanes
        )

    def masked(self, vector: str, mask: str) -> str:
        """Replace the lanes outside the mask by zeros."""
        if not mask:
            return vector
        return self.assembly.value(f"select {self._mask} {mask}, {self.vector} {vector}, {self.vector} zeroinitializer")

    # control

    def choose(self, comparison: str, a: Int64, b: Int64, on_true: Int64, on_false: Int64) -> Int64:
        """Write `on_true` if a compares with b as stated (in LLVM's words: slt, eq, …), else `on_false`."""
        holds = self.assembly.value(f"icmp {comparison} i64 {a}, {b}")
        return self.assembly.value(f"select i1 {holds}, i64 {on_true}, i64 {on_false}")

    @contextmanager
    def loop(
        self, first: Int64, past: Int64, step: int = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[LoopBody]:
        """Write a loop over the indices from `first` to before `past`. `carried` are types and first values.

        Inside, set `carry` to the values for the next iteration; after the loop, `carried` names the final values.
        """
        self._names += 1
        k = self._names
        names = LoopNames(f"%i{k}", f"h{k}", f"b{k}", f"x{k}", f"%m{k}", addition="add nsw")
        values = [CarriedValue(f"%c{k}.{j}", type, start) for j, (type, start) in enumerate(carried)]
        for name, type, start in values:
            if type == "ptr":
                self.memory.same(name, start)
        with self.assembly.loop(names, first, past, step, values) as given:
            body = LoopBody(names.counter, [value.name for value in values])
            yield body
            given.extend(body.carry)

    @contextmanager
    def when(self, comparison: str, a: Int64, b: Int64) -> Iterator[None]:
        """Run the instructions written inside if a compares with b as stated (in LLVM's words: slt, eq, …)."""
        self._names += 1
        k = self._names
        with self.assembly.when(self.assembly.value(f"icmp {comparison} i64 {a}, {b}", f"%w{k}"), f"t{k}", f"e{k}"):
            yield


def _mask_of(inside: Sequence[bool]) -> str:
    return "<" + ", ".join(f"i1 {str(lane).lower()}" for lane in inside) + ">"


def offsets_fit(axes: Iterable[tuple[int, int]], lane_steps: Iterable[int]) -> bool:
    """Whether 64 bits hold all offsets along `axes` together, and 32 bits the offsets of a vector's lanes.

    An axis is the largest distance of an index from 0, and the bytes to the next index. `lane_steps` are distances of
    neighbouring lanes in elements.
    """
    reach = sum((indices + MOST_LANES) * abs(step) for indices, step in axes)
    return reach < 1 << 62 and all(MOST_LANES * abs(elements) < 1 << 30 for elements in lane_steps)
