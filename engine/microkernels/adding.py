"""Adding at indices along an axis: each row of x with its updates, one after the other.

An index outside the axis adds nothing: it is told, and the result is not to be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.graph.alignment import ALIGNMENT
from engine.graph.tensor_type import Shape
from engine.microkernels.picking import read_indices, unflagged
from engine.microkernels.recipe import FLAG, KernelPhase, Recipe
from engine.microkernels.register_tile import lanes_for
from engine.microkernels.routine import Routine


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
    """Operand 0 is x, operand 1 the index, operand 2 the updates."""
    return Recipe((unflagged(), _phase(of)), shared=ALIGNMENT, checked=True)


def _phase(of: Adding) -> KernelPhase:
    to = Routine(of.dtype, lanes_for(of.itemsize))
    arrays = [*(to.place("operand", i) for i in range(3)), to.place("result", 0)]
    flag = to.place(*FLAG)
    with to.loop("%first", "%past") as item:
        lead = to.unravelled(item.index, of.rows)
        x, index, updates, row = (
            to.moved(pointer, lead, steps[:-1])
            for pointer, steps in zip(arrays, (of.x, of.index, of.updates, of.y), strict=True)
        )
        _copy(to, of, x, row)
        _add(to, of, index, updates, row, flag)
    rows = math.prod(of.rows)
    return to.phase(rows, rows * (of.extent + of.count))


def _copy(to: Routine, of: Adding, x: str, row: str) -> None:
    with to.loop(0, of.extent, to.lanes) as column:
        mask = to.below(to.sub(of.extent, column.index))
        read = to.load_row(to.at(x, to.mul(column.index, of.x[-1])), of.x[-1], mask)
        to.store_row(read, to.at(row, to.mul(column.index, of.y[-1])), of.y[-1], mask)


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
