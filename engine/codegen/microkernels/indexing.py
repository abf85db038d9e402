"""Reading and adding at indices along an axis.

y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others; bits, not numbers. An index outside the axis
reads and adds nothing: it is told, and the result is not to be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from engine.codegen.microkernels.recipe import FLAG, KernelPhase, Recipe
from engine.codegen.microkernels.register_tile import lanes_for
from engine.codegen.microkernels.routine import MOVED_AS, Int64, Routine
from engine.ir.run_context import ALIGNMENT
from engine.ir.tensor_type import Shape

#: indices that are read at once
PICKED_AT_ONCE: Final = 8
#: elements of an item, which follow one another on the last axis
_ITEM: Final = 1 << 12


@dataclass(frozen=True)
class Picking:
    """Reading by an index: `shape` is that of the index and of the result, strides are in bytes.

    An entry of the index picks one of `extent` elements, `step` apart; besides, x is stepped through as the result is,
    with strides of 0 where it is not. The result is dense. The index has integers of `index_bytes`; where they do not
    follow one another on the last axis, they are read one by one.
    """

    itemsize: int
    shape: Shape
    extent: int
    step: int
    x: tuple[int, ...]
    index: tuple[int, ...]
    index_bytes: int
    is_signed: bool


def picking(of: Picking) -> Recipe:
    """Read operand 0 at the indices of operand 1."""
    return Recipe((unflagged(), _Writer(of).phase()), shared=ALIGNMENT, checked=True)


def unflagged() -> KernelPhase:
    """Write the kernel that clears the flag."""
    to = Routine("float32", 1)
    to.memory.store("i64", "0", to.place(*FLAG))
    return to.phase(1, 0)


class _Writer:
    def __init__(self, of: Picking) -> None:
        self.of = of
        self.to = Routine(MOVED_AS[of.itemsize], PICKED_AT_ONCE)
        self.run = of.shape[-1]
        self.parts = -(-self.run // _ITEM)

    def phase(self) -> KernelPhase:
        of, to = self.of, self.to
        items = math.prod(of.shape[:-1]) * self.parts
        self.x, self.index = to.place("operand", 0), to.place("operand", 1)
        self.y, self.flag = to.place("result", 0), to.place(*FLAG)
        with to.loop("%first", "%past") as item:
            self._item(item.index)
        return to.phase(items, math.prod(of.shape))

    def _item(self, item: Int64) -> None:
        """Write whole vectors, then the rest of the row one by one."""
        of, to = self.of, self.to
        row, part = to.divided(item, self.parts)
        lead = to.unravelled(row, of.shape[:-1])
        x, index = to.moved(self.x, lead, of.x[:-1]), to.moved(self.index, lead, of.index[:-1])
        y = to.at(self.y, to.mul(row, self.run * of.itemsize))
        begin = to.mul(part, _ITEM)
        end = to.least(to.add(begin, _ITEM), self.run)
        is_dense = of.index[-1] == of.index_bytes
        middle = to.least(end, self.run - self.run % PICKED_AT_ONCE) if is_dense else begin
        for first, past, lanes in ((begin, middle, PICKED_AT_ONCE), (middle, end, 1)):
            self._elements(x, index, y, (first, past), lanes)

    def _elements(self, x: str, index: str, y: str, between: tuple[Int64, Int64], lanes: int) -> None:
        of, to, mask = self.of, self.to, f"<{lanes} x i1>"
        with to.loop(*between, lanes, carried=[(mask, "splat (i1 true)")]) as column:
            place = to.at(index, to.mul(column.index, of.index[-1]))
            picked = read_indices(to, place, of.index_bytes, lanes, is_signed=of.is_signed)
            inside = to.to.value(f"icmp ult <{lanes} x i64> {picked}, splat (i64 {of.extent})")
            own = of.x[-1]
            value = self._read_elements(to.at(x, to.mul(column.index, own)), picked, inside, own, lanes)
            there = to.at(y, to.mul(column.index, of.itemsize))
            to.memory.store(to.number, value, there, lanes)
            column.carry = [to.to.value(f"and {mask} {column.carried[0]}, {inside}")]
        all_of = f"llvm.vector.reduce.and.v{lanes}i1"
        to.to.declare("i1", all_of, mask)
        sound = to.to.value(f"zext i1 {to.to.value(f'call i1 @{all_of}({mask} {column.carried[0]})')} to i64")
        with to.when("eq", sound, 0):
            to.memory.store("i64", "1", self.flag)

    def _read_elements(self, x: str, picked: str, inside: str, own: int, lanes: int) -> str:
        """Read the elements at indices inside the axis; the next ones stand `own` bytes further each."""
        of, to = self.of, self.to.to
        words = f"<{lanes} x i64>"
        places = to.value(f"mul {words} {picked}, splat (i64 {of.step})")
        if own and lanes > 1:
            apart = ", ".join(f"i64 {own * lane}" for lane in range(lanes))
            places = to.value(f"add {words} {places}, <{apart}>")
        found = self.to.memory.each_further(x, lanes, places)
        return self.to.memory.gather(self.to.number, found, lanes, inside)


def read_indices(to: Routine, at: str, nbytes: int, lanes: int, *, is_signed: bool) -> str:
    """Read integers of so many bytes, as a vector of 64 bits each."""
    words, narrow = f"<{lanes} x i64>", f"<{lanes} x i{8 * nbytes}>"
    found = to.memory.load(f"i{8 * nbytes}", at, lanes)
    if narrow == words:
        return found
    return to.to.value(f"{'sext' if is_signed else 'zext'} {narrow} {found} to {words}")


@dataclass(frozen=True)
class Adding:
    """Rows of `extent` elements, over the axes `rows`, and `count` updates for each; strides are in bytes.

    Those along a row come last. The result `y` has the dtype of x and the updates. Indices are integers of
    `index_bytes`.
    """

    dtype: str
    itemsize: int
    rows: Shape
    extent: int
    count: int
    x: tuple[int, ...]
    index: tuple[int, ...]
    updates: tuple[int, ...]
    y: tuple[int, ...]
    index_bytes: int
    is_signed: bool


def adding(of: Adding) -> Recipe:
    """Add to operand 0, at the indices of operand 1, the updates of operand 2: row by row, one after the other."""
    to = Routine(of.dtype, lanes_for(of.itemsize))
    arrays = [*(to.place("operand", i) for i in range(3)), to.place("result", 0)]
    flag = to.place(*FLAG)
    with to.loop("%first", "%past") as item:
        lead = to.unravelled(item.index, of.rows)
        x, index, updates, row = (
            to.moved(pointer, lead, steps[:-1])
            for pointer, steps in zip(arrays, (of.x, of.index, of.updates, of.y), strict=True)
        )
        with to.loop(0, of.extent, to.lanes) as column:
            mask = to.below(to.sub(of.extent, column.index))
            read = to.load_row(to.at(x, to.mul(column.index, of.x[-1])), of.x[-1], mask)
            to.store_row(read, to.at(row, to.mul(column.index, of.y[-1])), of.y[-1], mask)
        _add(to, of, index, updates, row, flag)
    rows = math.prod(of.rows)
    phase = to.phase(rows, rows * (of.extent + of.count))
    return Recipe((unflagged(), phase), shared=ALIGNMENT, checked=True)


def _add(to: Routine, of: Adding, index: str, updates: str, row: str, flag: str) -> None:
    with to.loop(0, of.count) as each:
        place = to.at(index, to.mul(each.index, of.index[-1]))
        picked = read_indices(to, place, of.index_bytes, 1, is_signed=of.is_signed)
        at = to.to.value(f"extractelement <1 x i64> {picked}, i32 0")
        inside = to.within(at, of.extent)
        with to.when("ne", inside, 0):
            there = to.at(row, to.mul(at, of.y[-1]))
            update = to.load_number(to.at(updates, to.mul(each.index, of.updates[-1])))
            total = to.to.value(f"fadd {to.to.name('float')} {to.load_number(there)}, {update}")
            to.store_number(total, there)
        with to.when("eq", inside, 0):
            to.memory.store("i64", "1", flag)
