"""A loop divided for a card: what goes row by row, and sums over rows, which go column by column.

Every thread of a card computes a few elements, and threads that wait for one another are dear. So a sum over rows is
no part of what is done with a row: a total's addends are stored, one a row, and added up by a kernel of its own;
those of `columns` are computed anew by the thread that adds them, from the reductions of their rows, which are
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from engine.loops.program import REDUCTIONS, Instruction, Level, Loop, LoopBuilder, Scalar
from engine.loops.within_range import range_condition


class CudaParts(NamedTuple):
    """A loop without FUNCTIONS in two.

    `rows` has the results element and row as they were, then the addends of each total as a result row, then, where
    `flags` is true, one more, a bool: whether anything is out of range. `columns` has the results columns; its operands
    are those of the loop, then the reductions that it reads, each of them a result row of `rows`, too: the
    last ones before the flag. Either is None where there is nothing for it to do.
    """

    rows: Loop | None
    columns: Loop | None
    #: for each result of the loop, which one of its part it is
    places: tuple[int, ...]
    #: results of `rows` that hold reductions for `columns`
    saved: tuple[int, ...]
    flags: bool


def cuda_parts(loop: Loop, *, reports_range: bool = False) -> CudaParts:
    """The parts of a loop; where it `reports_range`, its last result is the total that says so."""
    flag = range_condition(loop) if reports_range else None
    results = loop.results[:-1] if reports_range else loop.results
    needed = _reductions(loop, [result.value for result in results if result.kind == "columns"])
    rows, columns = _Copy(loop), _Copy(loop, needed)
    places = tuple(
        columns.store("columns", result.value)
        if result.kind == "columns"
        else rows.store("row" if result.kind == "total" else result.kind, result.value)
        for result in results
    )
    saved = tuple(rows.store("row", number) for number in needed)
    if flag is not None:
        rows.store("element" if loop.instructions[flag].level == Level.ELEMENT else "row", flag)
    return CudaParts(rows.loop(), columns.loop(), places, saved, flag is not None)


def _reductions(loop: Loop, roots: Sequence[int]) -> list[int]:
    """The reductions that are met on the way from these scalars to what they are made of."""
    found, waiting, seen = set[int](), list(roots), set[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        if loop.instructions[number].op in REDUCTIONS:
            found.add(number)
        else:
            waiting += loop.instructions[number].args
    return sorted(found)


class _Copy:
    """Scalars of a loop written once more, as they are needed; `read` are read instead, behind the loop's operands."""

    def __init__(self, loop: Loop, read: Sequence[int] = ()) -> None:
        self._loop = loop
        self._builder = LoopBuilder(loop.dtype, loop.row_axes)
        self._loads = [self._builder.load(operand.level, operand.type) for operand in loop.operands]
        self._made: dict[int, Scalar] = {number: self._builder.load(Level.ROW) for number in read}

    def store(self, kind: Literal["element", "row", "columns"], number: int) -> int:
        """Make a scalar a result: its number."""
        return self._builder.store(kind, self._scalar(number))

    def loop(self) -> Loop | None:
        """What was written; None where nothing was stored."""
        return self._builder.loop() if self._builder.results else None

    def _scalar(self, number: int) -> Scalar:
        waiting = [number]
        while waiting:
            instruction = self._loop.instructions[waiting[-1]]
            missing = [a for a in instruction.args if a not in self._made]
            if waiting[-1] in self._made or not missing:
                top = waiting.pop()
                if top not in self._made:
                    self._made[top] = self._written(instruction)
            else:
                waiting += missing
        return self._made[number]

    def _written(self, instruction: Instruction) -> Scalar:
        if instruction.op == "load":
            operand: int = instruction.data
            return self._loads[operand]
        if instruction.op == "constant":
            is_int = instruction.type == "int"
            return self._builder.integer(instruction.data) if is_int else self._builder.constant(instruction.data)
        return self._builder.apply(instruction.op, *(self._made[a] for a in instruction.args))
