"""Recurrences: a fused kernel as a step, gone through in order with its carries, printed as LLVM IR and as C.

The results of a step that are carries are operands of the next one. Where nothing is reduced, elements know nothing of
one another. So a kernel goes through the elements outside, and through time inside, with the carries of an element in
registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.graph.tensor_type import HostArray
from engine.loops.program import Loop, Space
from engine.loops.table import TableLayout, put_space, table_layout
from engine.loops.within_range import range_condition
from engine.native.bounds import WATCHED


class Carry(NamedTuple):
    """Number of the operand that a step is given, and of the result that takes its place in the next one."""

    operand: int
    result: int


class Recurrence(NamedTuple):
    """A kernel of results of the kind `element` alone, as a step; equal ones are equal, and `repr` says all of it.

    Operands that are no carry are the same in all steps, but for those that are `moving`, which have an entry for each.
    Results that are no carry have an entry for each step, or one that each step writes anew.

    `out_of_range` is the number of a scalar, where there is one that says that a step is to be computed otherwise.
    """

    loop: Loop
    carries: tuple[Carry, ...]
    moving: tuple[int, ...]
    out_of_range: int | None = None

    def ranged(self, expanded: Loop) -> Recurrence:
        """This, of a kernel whose functions were written out, the last result of which may say what is out of range."""
        if len(expanded.results) == len(self.loop.results):
            return self._replace(loop=expanded)
        own = expanded._replace(results=expanded.results[:-1])
        return self._replace(loop=own, out_of_range=range_condition(expanded))

    @property
    def stored(self) -> list[int]:
        """The results that each step writes."""
        carried = {carry.result for carry in self.carries}
        return [n for n in range(len(self.loop.results)) if n not in carried]

    def varying(self) -> set[int]:
        """The scalars that are not the same in all steps."""
        found, moving = set[int](), {*self.moving, *(carry.operand for carry in self.carries)}
        for number, scalar in enumerate(self.loop.instructions):
            if scalar.data in moving if scalar.op == "load" else not found.isdisjoint(scalar.args):
                found.add(number)
        return found

    def needed(self) -> list[int]:
        """The scalars that results need, in their order, without constants."""
        waiting = [result.value for result in self.loop.results]
        waiting += [] if self.out_of_range is None else [self.out_of_range]
        found = set[int]()
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self.loop.instructions[number].args
        return [number for number in sorted(found) if self.loop.instructions[number].op != "constant"]


class RecurrenceLayout(NamedTuple):
    """Positions in the table of a recurrence: those of its kernel, then of how many steps it takes, and of strides.

    Those of `operands` and `results` say by how many elements an array moves from step to step; `flag` is where the
    address of a byte stands, which becomes 1 where a step is out of range.
    """

    loop: TableLayout
    steps: int

    @property
    def operands(self) -> range:
        """Of each operand."""
        return range(self.steps + 1, self.steps + 1 + len(self.loop.operands))

    @property
    def results(self) -> range:
        """Of each result."""
        return range(self.operands.stop, self.operands.stop + len(self.loop.results))

    @property
    def flag(self) -> int:
        """Behind them."""
        return self.results.stop

    @property
    def size(self) -> int:
        """Entries of the table."""
        return self.flag + 1


def recurrence_layout(recurrence: Recurrence) -> RecurrenceLayout:
    """The layout of a recurrence's table."""
    found = table_layout(recurrence.loop)
    return RecurrenceLayout(found, found.size)


def recurrence_table(recurrence: Recurrence, space: Space, steps: int, entries: Sequence[int]) -> HostArray:
    """A table without addresses. `entries` are the elements from one step to the next, of operands, then results."""
    layout = recurrence_layout(recurrence)
    tables = WATCHED.tables(1, layout.size)
    put_space(tables, layout.loop, space)
    table: HostArray = tables[0]
    table[layout.steps] = steps
    table[layout.operands.start : layout.results.stop] = entries
    return table
