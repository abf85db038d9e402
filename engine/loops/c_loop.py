"""A fused kernel as C: its arrays in a row, its scalars, and what a sweep computes of an element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from engine.loops.c_expressions import NAMES, STORED, c_expression, c_extreme, c_literal
from engine.loops.program import Loop, Scalars
from engine.loops.schedule import Schedule, Sweep
from engine.loops.table import TableEntry, table_layout

#: what a reduction begins with
FIRST: Final = {"row_sum": "0", "row_prod": "1", "row_max": "(-INFINITE)", "row_min": "INFINITE"}


class CLoop:
    """The kernel, and its parts line by line. The table is `table`, a row `row`."""

    def __init__(self, loop: Loop, passes: Schedule) -> None:
        self.loop = loop
        self.schedule = passes
        self.layout = table_layout(loop)

    def sizes(self) -> Iterator[str]:
        """The sizes of the space."""
        for size in ("columns", "length", "rows", "block_rows"):
            yield f"const long long {size} = table[{int(TableEntry[size.upper()])}];"

    def results(self, kind: str) -> list[int]:
        """The numbers of the results of a kind."""
        return [n for n, result in enumerate(self.loop.results) if result.kind == kind]

    def pointers(self) -> Iterator[str]:
        """Where each array has this row."""
        axes = range(self.loop.row_axes)
        yield "long long rest = row;"
        for axis in reversed(axes[1:]):
            extent = f"table[{TableEntry.EXTENTS + axis}]"
            yield f"const long long index{axis} = rest % {extent}; rest /= {extent};"
        if axes:
            yield "const long long index0 = rest;"
        for name, position, stored in self._arrays():
            steps = "".join(f" + index{axis} * table[{position + 1 + axis}]" for axis in axes)
            yield f"{stored}* RESTRICT {name} = ({stored}*)table[{position}]{steps};"

    def _arrays(self) -> Iterator[tuple[str, int, str]]:
        """Operands and results that have strides: name, position in the table, type."""
        for n, (operand, position) in enumerate(zip(self.loop.operands, self.layout.operands, strict=True)):
            yield f"operand{n}", position, f"const {STORED[operand.type]}"
        for n, (result, position) in enumerate(zip(self.loop.results, self.layout.results, strict=True)):
            if not result.adds_up:
                yield f"result{n}", position, STORED[self.type(result.value)]

    def type(self, number: int) -> Scalars:
        """That of a scalar."""
        return self.loop.instructions[number].type

    def name(self, number: int) -> str:
        """A scalar that has been defined, or a number."""
        found = self.loop.instructions[number]
        return c_literal(found.data, found.type, self.loop.dtype) if found.op == "constant" else f"v{number}"

    def between(self, numbers: Iterable[int]) -> Iterator[str]:
        """Scalars of a row, between its sweeps."""
        for number in numbers:
            yield self._defined(number, "0")

    def computed(self, sweep: Sweep, at: str) -> Iterator[str]:
        """The scalars that a sweep computes of the element in column `at`."""
        for number in sweep.computed:
            yield self._defined(number, at)

    def _defined(self, number: int, at: str) -> str:
        """A scalar: what it is loaded from, or an expression of earlier ones."""
        found = self.loop.instructions[number]
        loaded = found.op == "load"
        value = (
            f"operand{found.data}[{at}]"
            if loaded
            else c_expression(self.loop, number, [self.name(a) for a in found.args])
        )
        return f"const {NAMES[found.type]} v{number} = {value};"

    def reduced(self, i: int, so_far: str) -> str:
        """A reduction so far with the element of a sweep."""
        return f"{so_far} = {self.combined(i, self.name(self.loop.instructions[i].args[0]), so_far)};"

    def combined(self, i: int, one: str, other: str) -> str:
        """Two values of a reduction as one."""
        op = self.loop.instructions[i].op
        sign = {"row_sum": "+", "row_prod": "*"}.get(op)
        return f"{other} {sign} {one}" if sign else c_extreme(op.replace("row_", "") + "imum", one, other)
