"""A kernel while it is written: whole numbers that fold, loops with carried values, vectors, and masks for their ends.

Offsets are in bytes. A whole number is an int where it is known, else the name of an i64.
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

#: elements of so many bytes are moved as these floats, whatever their bits mean
MOVED_AS: Final = {4: "float32", 8: "float64"}
#: lanes of a vector, at most
MOST_LANES: Final = 16


@dataclass(eq=False, slots=True)
class Rounds:
    """A loop being written: its index, the values carried into a round, and those to be carried out of it."""

    index: str
    carried: list[str]
    carry: list[str] = field(default_factory=list)


class Routine:
    """The text of `kernel(first, past, table)`, in floats of one dtype and vectors of `lanes` of them."""

    def __init__(self, dtype: str, lanes: int) -> None:
        self.to = Assembly(dtype)
        self.memory = KernelMemory(self.to)
        self.lanes = lanes
        self.places: list[TableEntryOf] = []
        self._names = 0

    @property
    def size(self) -> int:
        """Bytes of a float."""
        return self.to.bits // 8

    @property
    def number(self) -> str:
        """The type of a float."""
        return self.to.name("float")

    @property
    def vector(self) -> str:
        """The type of a vector."""
        return self.to.name("float", self.lanes)

    def phase(self, items: int, work: int) -> KernelPhase:
        """Return the kernel that has been written."""
        return KernelPhase(self.to.module, items, tuple(self.places), work)

    # whole numbers

    def add(self, a: Int64, b: Int64) -> Int64:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return b if a == 0 else a if b == 0 else self.to.value(f"add nsw i64 {a}, {b}")

    def sub(self, a: Int64, b: Int64) -> Int64:
        """a − b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.to.value(f"sub nsw i64 {a}, {b}")

    def mul(self, a: Int64, b: int) -> Int64:
        """a · b."""
        if isinstance(a, int):
            return a * b
        return 0 if b == 0 else a if b == 1 else self.to.value(f"mul nsw i64 {a}, {b}")

    def divided(self, a: Int64, b: int) -> tuple[Int64, Int64]:
        """Quotient and remainder of a ≥ 0."""
        if isinstance(a, int):
            return divmod(a, b)
        if b == 1:
            return a, 0
        quotient = self.to.value(f"udiv i64 {a}, {b}")
        return quotient, self.sub(a, self.mul(quotient, b))

    def unravelled(self, a: Int64, extents: Sequence[int]) -> list[Int64]:
        """The index tuple of a flat index a ≥ 0, in row-major order."""
        if not extents:
            return []
        indices: list[Int64] = []
        for extent in reversed(extents[1:]):
            a, index = self.divided(a, extent)
            indices.append(index)
        return [a, *reversed(indices)]

    def least(self, a: Int64, b: Int64) -> Int64:
        """The smaller of the two."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.to.least(a, b)

    def most(self, a: Int64, b: Int64) -> Int64:
        """The larger of the two."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        is_more = self.to.value(f"icmp sgt i64 {a}, {b}")
        return self.to.value(f"select i1 {is_more}, i64 {a}, i64 {b}")

    def within(self, a: Int64, extent: int) -> Int64:
        """1 if 0 ≤ a < extent, else 0."""
        if isinstance(a, int):
            return int(0 <= a < extent)
        is_within = self.to.value(f"icmp ult i64 {a}, {extent}")
        return self.to.value(f"zext i1 {is_within} to i64")

    def both_hold(self, one: tuple[str, Int64, Int64], other: tuple[str, Int64, Int64]) -> Int64:
        """1 if both comparisons hold, else 0."""
        first, second = (self.to.value(f"icmp {how} i64 {a}, {b}") for how, a, b in (one, other))
        return self.to.value(f"zext i1 {self.to.value(f'and i1 {first}, {second}')} to i64")

    # memory

    def place(self, kind: PlaceKind, number: int, nbytes: int = 0) -> str:
        """The address of an operand, a result, or so many bytes of workspace: see `TableEntryOf`."""
        place = TableEntryOf(kind, number, nbytes)
        if place not in self.places:
            self.places.append(place)
        return self.memory.word(self.places.index(place), "ptr")

    def at(self, pointer: str, offset: Int64) -> str:
        """A pointer so many bytes further."""
        return pointer if offset == 0 else self.memory.further(pointer, "i8", offset)

    def moved(self, pointer: str, indices: Sequence[Int64], steps: Sequence[int]) -> str:
        """A pointer further by each index times its step."""
        for index, step in zip(indices, steps, strict=True):
            pointer = self.at(pointer, self.mul(index, step))
        return pointer

    def load(self, pointer: str, mask: str = "", outside: str = "zeroinitializer") -> str:
        """A vector; its lanes outside the mask are not read, and are those of `outside`."""
        return self.memory.load(self.number, pointer, self.lanes, mask, outside)

    def store(self, value: str, pointer: str, mask: str = "") -> None:
        """Write a vector, or its lanes inside the mask."""
        self.memory.store(self.number, value, pointer, self.lanes, mask)

    def gather(self, pointer: str, step: int, mask: str, outside: str = "zeroinitializer") -> str:
        """A vector of numbers `step` bytes apart; lanes outside the mask as with `load`."""
        return self.memory.gather(self.number, self._apart(pointer, step), self.lanes, mask, outside)

    def load_row(self, pointer: str, step: int, mask: str) -> str:
        """A vector of numbers `step` bytes apart, of which those outside the mask are 0, and not read."""
        if step == self.size:
            return self.load(pointer, mask)
        return self.gather(pointer, step, mask or self.first(self.lanes))

    def store_row(self, value: str, pointer: str, step: int, mask: str) -> None:
        """Write the lanes inside the mask `step` bytes apart."""
        if step == self.size:
            self.store(value, pointer, mask)
        else:
            self.scatter(value, pointer, step, mask or self.first(self.lanes))

    def load_apart(self, pointer: str, step: int) -> str:
        """A vector of numbers `step` bytes apart, if those between, up to the next vector, may be read, too.

        If every second number is wanted, two vectors are read, and half of the lanes is left out.
        """
        if step == self.size:
            return self.load(pointer)
        if step != 2 * self.size:
            return self.gather(pointer, step, self.first(self.lanes))
        halves = [self.load(self.at(pointer, k * self.lanes * self.size)) for k in (0, 1)]
        return self.shuffled(halves[0], halves[1], range(0, 2 * self.lanes, 2))

    def scatter(self, value: str, pointer: str, step: int, mask: str) -> None:
        """Write the lanes inside the mask `step` bytes apart."""
        self.memory.scatter(self.number, value, self._apart(pointer, step), self.lanes, mask)

    def _apart(self, pointer: str, step: int) -> str:
        offsets = ", ".join(f"i64 {lane * step}" for lane in range(self.lanes))
        return self.memory.each_further(pointer, self.lanes, f"<{offsets}>")

    def load_number(self, pointer: str) -> str:
        """One number."""
        return self.memory.load(self.number, pointer)

    def address(self, pointer: str) -> str:
        """A pointer as a whole number."""
        return self.to.value(f"ptrtoint ptr {pointer} to i64")

    def store_number(self, value: str, pointer: str) -> None:
        """Write one number."""
        self.memory.store(self.number, value, pointer)

    def broadcast(self, pointer: str) -> str:
        """A vector of one number."""
        return self.to.splat(self.load_number(pointer), self.number, self.lanes)

    # vectors

    @property
    def zero(self) -> str:
        """A vector of zeros."""
        return "zeroinitializer"

    def splat(self, number: float) -> str:
        """A vector of a constant."""
        return f"splat ({self.to.name('float')} {literal(number, 'float')})"

    def fma(self, a: str, b: str, c: str) -> str:
        """a · b + c, rounded once."""
        name = f"llvm.fma.{self.to.suffix('float', self.lanes)}"
        self.to.declare(self.vector, name, *[self.vector] * 3)
        return self.to.value(f"call {self.vector} @{name}({self.vector} {a}, {self.vector} {b}, {self.vector} {c})")

    def sum(self, a: str, b: str) -> str:
        """a + b."""
        return self.to.value(f"fadd {self.vector} {a}, {b}")

    def halved(self, vector: str) -> str:
        """The sum of the lanes: the lower half and the upper one, until there is one number."""
        return self.to.halved(vector, self.lanes, self._sum_of_halves)

    def _sum_of_halves(self, low: str, high: str, lanes: int) -> str:
        return self.to.value(f"fadd {self.to.name('float', lanes)} {low}, {high}")

    def reversed(self, vector: str) -> str:
        """The lanes from the last to the first."""
        return self.shuffled(vector, "poison", range(self.lanes - 1, -1, -1))

    def transposed(self, rows: Sequence[str]) -> list[str]:
        """Transpose as many vectors as there are lanes, by exchanging off-diagonal blocks, ever larger."""
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
        """These lanes of two vectors."""
        return self.to.shuffled(a, b, self.lanes, lanes)

    # masks

    @property
    def _mask(self) -> str:
        return f"<{self.lanes} x i1>"

    def below(self, count: Int64) -> str:
        """The mask of the first `count` lanes: none where it is negative, all where there are no more; "" for all."""
        if isinstance(count, int):
            return "" if count >= self.lanes else self.first(count)
        return self.between(0, count)

    def first(self, count: int) -> str:
        """The mask of the first `count` lanes, all of them included."""
        return _mask_of([lane < count for lane in range(self.lanes)])

    def last(self, count: int) -> str:
        """The mask of the last `count` lanes."""
        return _mask_of([lane >= self.lanes - count for lane in range(self.lanes)])

    def between(self, first: Int64, past: Int64, step: int = 1) -> str:
        """The mask of the lanes whose number times `step` is from `first` to before `past`; "" for all.

        Both may lie outside.
        """
        if isinstance(first, int) and isinstance(past, int):
            inside = [first <= lane * step < past for lane in range(self.lanes)]
            return "" if all(inside) else _mask_of(inside)
        far = self.lanes * step
        words = f"<{self.lanes} x i32>"
        numbers = f"<{', '.join(f'i32 {lane * step}' for lane in range(self.lanes))}>"
        under = self.to.value(f"icmp slt {words} {numbers}, {self._spread(self.least(past, far))}")
        if first == 0:
            return under
        over = self.to.value(f"icmp sge {words} {numbers}, {self._spread(self.most(first, -far))}")
        return self.both(under, over)

    def all_or_none(self, flag: Int64) -> str:
        """The mask of all lanes where the flag is not 0, else of none."""
        return self.below(self.mul(flag, self.lanes))

    def both(self, a: str, b: str) -> str:
        """The mask of the lanes inside two masks; "" stands for all."""
        if not a or not b:
            return a or b
        return self.to.value(f"and {self._mask} {a}, {b}")

    def _spread(self, number: Int64) -> str:
        """A number, at most a few times the lanes in size, in all lanes; numbers far below are all alike."""
        if isinstance(number, int):
            return f"splat (i32 {number})"
        return self.to.splat(self.to.value(f"trunc i64 {self.most(number, -(1 << 30))} to i32"), "i32", self.lanes)

    def kept(self, vector: str, mask: str) -> str:
        """The lanes inside the mask, and zeros."""
        if not mask:
            return vector
        return self.to.value(f"select {self._mask} {mask}, {self.vector} {vector}, {self.vector} zeroinitializer")

    # control

    def choose(self, comparison: str, a: Int64, b: Int64, on_true: Int64, on_false: Int64) -> Int64:
        """`on_true` if a compares so (LLVM's: slt, eq, …) with b, else `on_false`."""
        holds = self.to.value(f"icmp {comparison} i64 {a}, {b}")
        return self.to.value(f"select i1 {holds}, i64 {on_true}, i64 {on_false}")

    @contextmanager
    def loop(
        self, first: Int64, past: Int64, step: int = 1, carried: Sequence[tuple[str, str]] = ()
    ) -> Iterator[Rounds]:
        """Write a loop over the indices from `first` to before `past`. `carried` are types and first values.

        Inside, set `carry` to the values of the next round; after the loop, `carried` are those of the last.
        """
        self._names += 1
        k = self._names
        names = LoopNames(f"%i{k}", f"h{k}", f"b{k}", f"x{k}", f"%m{k}", addition="add nsw")
        values = [CarriedValue(f"%c{k}.{j}", type, start) for j, (type, start) in enumerate(carried)]
        for name, type, start in values:
            if type == "ptr":
                self.memory.same(name, start)
        with self.to.loop(names, first, past, step, values) as given:
            rounds = Rounds(names.counter, [value.name for value in values])
            yield rounds
            given.extend(rounds.carry)

    @contextmanager
    def when(self, comparison: str, a: Int64, b: Int64) -> Iterator[None]:
        """Run what is written inside if a compares so (LLVM's: slt, eq, …) with b."""
        self._names += 1
        k = self._names
        with self.to.when(self.to.value(f"icmp {comparison} i64 {a}, {b}", f"%w{k}"), f"t{k}", f"e{k}"):
            yield


def _mask_of(inside: Sequence[bool]) -> str:
    return "<" + ", ".join(f"i1 {str(lane).lower()}" for lane in inside) + ">"


def hold_offsets(axes: Iterable[tuple[int, int]], apart: Iterable[int]) -> bool:
    """Whether 64 bits hold the offsets along all `axes` together, and 32 bits the numbers of a vector's lanes.

    An axis is how far indices go from 0, and the bytes to the next one. Lanes are so many elements `apart`.
    """
    reach = sum((indices + MOST_LANES) * abs(step) for indices, step in axes)
    return reach < 1 << 62 and all(MOST_LANES * abs(elements) < 1 << 30 for elements in apart)
