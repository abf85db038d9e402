"""A loop as C: the same lanes and the same order of sums as the LLVM printer has, and so the same bits.

To be compiled without contraction: `gcc -O3 -ffp-contract=off`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.loops.c_expressions import NAMES, STORED, c_expression, c_extreme, c_literal, host_definitions
from engine.loops.program import Loop, Scalars
from engine.loops.schedule import Schedule, Sweep, schedule
from engine.loops.table import TableEntry, table_layout

_FIRST = {"row_sum": "0", "row_prod": "1", "row_max": "(-INFINITE)", "row_min": "INFINITE"}


def c_text(loop: Loop, lanes: int) -> str:
    """A file with `void kernel(long long first, long long past, const long long* table)`.

    The loop has none of FUNCTIONS. Vectors have `lanes` elements, a power of two.
    """
    return host_definitions(loop.dtype) + "\n".join(_Nest(loop, lanes).kernel()) + "\n"


class _Nest:
    """The loops around the expressions."""

    def __init__(self, loop: Loop, lanes: int) -> None:
        self.loop = loop
        self.lanes = lanes
        self.schedule: Schedule = schedule(loop)
        self.layout = table_layout(loop)

    def kernel(self) -> Iterator[str]:
        """The function, line by line."""
        yield "void kernel(long long first, long long past, const long long* table) {"
        for size in ("columns", "length", "rows", "block_rows"):
            yield f"const long long {size} = table[{int(TableEntry[size.upper()])}];"
        yield f"const long long padded = (columns + {self.lanes - 1}) & {-self.lanes}LL;"
        yield "for (long long block = first; block < past; block++) {"
        yield from self._block()
        yield "}\n}"

    def _block(self) -> Iterator[str]:
        yield "const long long most = (block + 1) * block_rows, end = most < rows ? most : rows;"
        for n in self._results("columns"):
            yield f"F* restrict part{n} = (F*)table[{self.layout.results[n]}] + block * columns;"
            yield f"for (long long c = 0; c < columns; c++) part{n}[c] = 0;"
        for n in self._results("total"):
            yield f"F sum{n} = 0;"
        yield "for (long long row = block * block_rows; row < end; row++) {"
        yield from self._row()
        yield "}"
        for n in self._results("total"):
            yield f"((F*)table[{self.layout.results[n]}])[block] = sum{n};"

    def _results(self, kind: str) -> list[int]:
        return [n for n, result in enumerate(self.loop.results) if result.kind == kind]

    def _row(self) -> Iterator[str]:
        yield "const long long left = length - row * columns, count = left < columns ? left : columns;"
        yield from self._pointers()
        for sweep in self.schedule.sweeps:
            yield from self._between(sweep.before)
            yield from self._sweep(sweep)
        yield from self._between(self.schedule.after)
        for n in self._results("row"):
            yield f"*result{n} = {self._name(self.loop.results[n].value)};"
        for n in self._results("total"):
            yield f"sum{n} += {self._name(self.loop.results[n].value)};"

    def _pointers(self) -> Iterator[str]:
        """Where each array has this row, and the scratch."""
        axes = range(self.loop.row_axes)
        yield "long long rest = row;"
        for axis in reversed(axes[1:]):
            extent = f"table[{TableEntry.EXTENTS + axis}]"
            yield f"const long long index{axis} = rest % {extent}; rest /= {extent};"
        if axes:
            yield "const long long index0 = rest;"
        for name, position, stored in self._arrays():
            steps = "".join(f" + index{axis} * table[{position + 1 + axis}]" for axis in axes)
            yield f"{stored}* restrict {name} = ({stored}*)table[{position}]{steps};"
        for k, number in enumerate(self.schedule.scratch):
            stored = STORED[self._type(number)]
            yield f"{stored}* restrict kept{k} = ({stored}*)((F*)table[{self.layout.scratch}] + {k} * padded);"

    def _arrays(self) -> Iterator[tuple[str, int, str]]:
        """Operands and results that have strides: name, position in the table, type."""
        for n, (operand, position) in enumerate(zip(self.loop.operands, self.layout.operands, strict=True)):
            yield f"operand{n}", position, f"const {STORED[operand.type]}"
        for n, (result, position) in enumerate(zip(self.loop.results, self.layout.results, strict=True)):
            if not result.adds_up:
                yield f"result{n}", position, STORED[self._type(result.value)]

    def _type(self, number: int) -> Scalars:
        return self.loop.instructions[number].type

    def _name(self, number: int) -> str:
        found = self.loop.instructions[number]
        return c_literal(found.data, found.type, self.loop.dtype) if found.op == "constant" else f"v{number}"

    def _between(self, numbers: Iterable[int]) -> Iterator[str]:
        for number in numbers:
            yield self._defined(number, "0")

    def _defined(self, number: int, at: str) -> str:
        """A scalar: what it is loaded from, or an expression of earlier ones."""
        found = self.loop.instructions[number]
        loaded = found.op == "load"
        value = (
            f"operand{found.data}[{at}]"
            if loaded
            else c_expression(self.loop, number, [self._name(a) for a in found.args])
        )
        return f"const {NAMES[found.type]} v{number} = {value};"

    def _sweep(self, sweep: Sweep) -> Iterator[str]:
        for i in sweep.reductions:
            first = _FIRST[self.loop.instructions[i].op]
            yield f"F r{i}[{self.lanes}]; for (int l = 0; l < {self.lanes}; l++) r{i}[l] = {first};"
        yield f"for (long long c = 0; c < count; c += {self.lanes}) {{"
        yield f"const int some = count - c < {self.lanes} ? (int)(count - c) : {self.lanes};"
        yield "for (int l = 0; l < some; l++) {"
        yield from self._body(sweep)
        yield "}\n}"
        for i in sweep.reductions:
            combined = self._combined(i, f"r{i}[l]", f"r{i}[l + h]")
            yield f"for (int h = {self.lanes // 2}; h; h /= 2) for (int l = 0; l < h; l++) r{i}[l] = {combined};"
            yield f"const F v{i} = r{i}[0];"

    def _body(self, sweep: Sweep) -> Iterator[str]:
        for number in sweep.fetched:
            kept = self.schedule.scratch.index(number)
            yield f"const {NAMES[self._type(number)]} v{number} = kept{kept}[c + l];"
        for number in sweep.computed:
            yield self._defined(number, "c + l")
        for number in sweep.kept:
            yield f"kept{self.schedule.scratch.index(number)}[c + l] = {self._name(number)};"
        for n in sweep.results:
            value = self._name(self.loop.results[n].value)
            stored = self.loop.results[n].kind == "element"
            yield f"result{n}[c + l] = {value};" if stored else f"part{n}[c + l] += {value};"
        for i in sweep.reductions:
            value = self._name(self.loop.instructions[i].args[0])
            yield f"r{i}[l] = {self._combined(i, value, f'r{i}[l]')};"

    def _combined(self, i: int, one: str, other: str) -> str:
        op = self.loop.instructions[i].op
        sign = {"row_sum": "+", "row_prod": "*"}.get(op)
        return f"{other} {sign} {one}" if sign else c_extreme(op.replace("row_", "") + "imum", one, other)
