"""Gather and scatter-add kernels: reading and adding at indices along an axis.

y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for other axes. Elements are copied as bits, not as numbers.
An index outside the axis reads and adds nothing: the kernel sets the flag that its result is invalid.
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

#: indices that are read at a time
PICKED_AT_ONCE: Final = 8
#: elements of an item, consecutive on the last axis
_ITEM: Final = 1 << 12


@dataclass(frozen=True)
class GatherGeometry:
    """Gather by an index: `shape` is that of the index and the result, strides are in bytes.

    An index entry selects one of `extent` elements, `step` bytes apart. Along other axes, x is stepped through like the
    result, with stride 0 if it is repeated. The result is dense. The index has integers of `index_bytes`; if they are
    not contiguous on the last axis, they are read one by one.
    """

    itemsize: int
    shape: Shape
    extent: int
    step: int
    x: tuple[int, ...]
    index: tuple[int, ...]
    index_bytes: int
    is_signed: bool


def gather(geometry: GatherGeometry) -> Recipe:
    """Write the gather of operand 0 at the indices of operand 1."""
    return Recipe((clear_flag(), _Writer(geometry).phase()), shared=ALIGNMENT, checked=True)


def clear_flag() -> KernelPhase:
    """Write the kernel that clears the flag."""
    ir = Routine("float32", 1)
    ir.memory.store("i64", "0", ir.place(*FLAG))
    return ir.phase(1, 0)


class _Writer:
    def __init__(self, geometry: GatherGeometry) -> None:
        self.geometry = geometry
        self.ir = Routine(MOVED_AS[geometry.itemsize], PICKED_AT_ONCE)
        self.run = geometry.shape[-1]
        self.parts = -(-self.run // _ITEM)

    def phase(self) -> KernelPhase:
        geometry, ir = self.geometry, self.ir
        items = math.prod(geometry.shape[:-1]) * self.parts
        self.x, self.index = ir.place("operand", 0), ir.place("operand", 1)
        self.y, self.flag = ir.place("result", 0), ir.place(*FLAG)
        with ir.loop("%first", "%past") as item:
            self._item(item.index)
        return ir.phase(items, math.prod(geometry.shape))

    def _item(self, item: Int64) -> None:
        """Write whole vectors, then the rest of the row one by one."""
        geometry, ir = self.geometry, self.ir
        row, part = ir.divided(item, self.parts)
        lead = ir.unravelled(row, geometry.shape[:-1])
        x, index = ir.moved(self.x, lead, geometry.x[:-1]), ir.moved(self.index, lead, geometry.index[:-1])
        y = ir.at(self.y, ir.mul(row, self.run * geometry.itemsize))
        begin = ir.mul(part, _ITEM)
        end = ir.minimum(ir.add(begin, _ITEM), self.run)
        is_dense = geometry.index[-1] == geometry.index_bytes
        middle = ir.minimum(end, self.run - self.run % PICKED_AT_ONCE) if is_dense else begin
        for first, past, lanes in ((begin, middle, PICKED_AT_ONCE), (middle, end, 1)):
            self._elements(x, index, y, (first, past), lanes)

    def _elements(self, x: str, index: str, y: str, bounds: tuple[Int64, Int64], lanes: int) -> None:
        geometry, ir, mask = self.geometry, self.ir, f"<{lanes} x i1>"
        with ir.loop(*bounds, lanes, carried=[(mask, "splat (i1 true)")]) as column:
            index_pointer = ir.at(index, ir.mul(column.index, geometry.index[-1]))
            picked = read_indices(ir, index_pointer, geometry.index_bytes, lanes, is_signed=geometry.is_signed)
            # The comparison is unsigned, so that it is also false for negative indices.
            inside = ir.assembly.value(f"icmp ult <{lanes} x i64> {picked}, splat (i64 {geometry.extent})")
            x_step = geometry.x[-1]
            value = self._read_elements(ir.at(x, ir.mul(column.index, x_step)), picked, inside, x_step, lanes)
            target = ir.at(y, ir.mul(column.index, geometry.itemsize))
            ir.memory.store(ir.number, value, target, lanes)
            # Carry whether all indices so far were inside, so that the flag is written once, after the loop.
            column.carry = [ir.assembly.value(f"and {mask} {column.carried[0]}, {inside}")]
        reduce_and = f"llvm.vector.reduce.and.v{lanes}i1"
        ir.assembly.declare("i1", reduce_and, mask)
        all_inside = ir.assembly.value(
            f"zext i1 {ir.assembly.value(f'call i1 @{reduce_and}({mask} {column.carried[0]})')} to i64"
        )
        with ir.when("eq", all_inside, 0):
            ir.memory.store("i64", "1", self.flag)

    def _read_elements(self, x: str, picked: str, inside: str, x_step: int, lanes: int) -> str:
        """Load the elements at indices inside the axis; the element of each lane is `x_step` bytes further."""
        geometry, ir = self.geometry, self.ir.assembly
        words = f"<{lanes} x i64>"
        offsets = ir.value(f"mul {words} {picked}, splat (i64 {geometry.step})")
        if x_step and lanes > 1:
            lane_offsets = ", ".join(f"i64 {x_step * lane}" for lane in range(lanes))
            offsets = ir.value(f"add {words} {offsets}, <{lane_offsets}>")
        pointers = self.ir.memory.each_further(x, lanes, offsets)
        return self.ir.memory.gather(self.ir.number, pointers, lanes, inside)


def read_indices(ir: Routine, pointer: str, nbytes: int, lanes: int, *, is_signed: bool) -> str:
    """Load integers of `nbytes` bytes as a vector of 64-bit integers."""
    words, narrow = f"<{lanes} x i64>", f"<{lanes} x i{8 * nbytes}>"
    value = ir.memory.load(f"i{8 * nbytes}", pointer, lanes)
    if narrow == words:
        return value
    return ir.assembly.value(f"{'sext' if is_signed else 'zext'} {narrow} {value} to {words}")


@dataclass(frozen=True)
class ScatterAddGeometry:
    """Scatter-add to rows of `extent` elements, over the axes `rows`, with `count` updates each; strides are in bytes.

    Strides along a row come last. The result `y` has the dtype of x and the updates. Indices are integers of
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


def scatter_add(geometry: ScatterAddGeometry) -> Recipe:
    """Write the scatter-add: operand 0 plus the updates of operand 2 at the indices of operand 1, row by row."""
    ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
    arrays = [*(ir.place("operand", i) for i in range(3)), ir.place("result", 0)]
    flag = ir.place(*FLAG)
    with ir.loop("%first", "%past") as item:
        lead = ir.unravelled(item.index, geometry.rows)
        x, index, updates, row = (
            ir.moved(pointer, lead, steps[:-1])
            for pointer, steps in zip(arrays, (geometry.x, geometry.index, geometry.updates, geometry.y), strict=True)
        )
        with ir.loop(0, geometry.extent, ir.lanes) as column:
            mask = ir.below(ir.sub(geometry.extent, column.index))
            elements = ir.load_row(ir.at(x, ir.mul(column.index, geometry.x[-1])), geometry.x[-1], mask)
            ir.store_row(elements, ir.at(row, ir.mul(column.index, geometry.y[-1])), geometry.y[-1], mask)
        # Updates of a row are added one after the other by one thread, so that equal indices cause no race and bits are
        # fixed.
        _add(ir, geometry, index, updates, row, flag)
    rows = math.prod(geometry.rows)
    phase = ir.phase(rows, rows * (geometry.extent + geometry.count))
    return Recipe((clear_flag(), phase), shared=ALIGNMENT, checked=True)


def _add(ir: Routine, geometry: ScatterAddGeometry, index: str, updates: str, row: str, flag: str) -> None:
    with ir.loop(0, geometry.count) as each:
        pointer = ir.at(index, ir.mul(each.index, geometry.index[-1]))
        picked = read_indices(ir, pointer, geometry.index_bytes, 1, is_signed=geometry.is_signed)
        position = ir.assembly.value(f"extractelement <1 x i64> {picked}, i32 0")
        inside = ir.within(position, geometry.extent)
        with ir.when("ne", inside, 0):
            target = ir.at(row, ir.mul(position, geometry.y[-1]))
            update = ir.load_number(ir.at(updates, ir.mul(each.index, geometry.updates[-1])))
            total = ir.assembly.value(f"fadd {ir.assembly.name('float')} {ir.load_number(target)}, {update}")
            ir.store_number(total, target)
        with ir.when("eq", inside, 0):
            ir.memory.store("i64", "1", flag)
