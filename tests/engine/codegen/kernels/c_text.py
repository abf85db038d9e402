"""Print a loop as C with the lanes and the order of sums of the LLVM printer, and so with the same bits.

Compile it without contraction: `gcc -O3 -ffp-contract=off`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.codegen.kernels.c_text import FIRST, NAMES, STORED, CKernel, host_definitions
from engine.codegen.kernels.program import FusedKernel, Sweep, schedule
from engine.codegen.kernels.recurrence import CRecurrence, Recurrence


def c_text(loop: FusedKernel, lanes: int) -> str:
    """Print a file with `void kernel(long long first, long long past, const long long* table)`.

    The loop has none of FUNCTIONS. Vectors have `lanes` elements, a power of two.
    """
    return host_definitions(loop.dtype) + "\n".join(_HostLoop(loop, lanes).kernel()) + "\n"


def c_recurrence_text(recurrence: Recurrence) -> str:
    """Print a recurrence like `c_text`."""
    return host_definitions(recurrence.fused.dtype) + "\n".join(_HostSteps(recurrence).kernel()) + "\n"


class _HostSteps(CRecurrence):
    """The loops around the steps."""

    def kernel(self) -> Iterator[str]:
        """Yield the lines of the function."""
        yield "void kernel(long long first, long long past, const long long* table) {"
        yield from self.sizes()
        yield from self.steps()
        yield "const long long most = past * block_rows, end = most < rows ? most : rows;"
        yield "for (long long row = first * block_rows; row < end; row++) {"
        yield "const long long left = length - row * columns, count = left < columns ? left : columns;"
        yield from self.pointers()
        yield "for (long long c = 0; c < count; c++) {"
        yield from self.element("c")
        yield "}\n}\n}"


class _HostLoop(CKernel):
    """The loops around the expressions."""

    def __init__(self, loop: FusedKernel, lanes: int) -> None:
        super().__init__(loop, schedule(loop))
        self.lanes = lanes

    def kernel(self) -> Iterator[str]:
        """Yield the lines of the function."""
        yield "void kernel(long long first, long long past, const long long* table) {"
        yield from self.sizes()
        yield f"const long long padded = (columns + {self.lanes - 1}) & {-self.lanes}LL;"
        yield "for (long long block = first; block < past; block++) {"
        yield from self._block()
        yield "}\n}"

    def _block(self) -> Iterator[str]:
        yield "const long long most = (block + 1) * block_rows, end = most < rows ? most : rows;"
        for n in self.results("columns"):
            yield f"F* RESTRICT part{n} = (F*)table[{self.layout.results[n]}] + block * columns;"
            yield f"for (long long c = 0; c < columns; c++) part{n}[c] = 0;"
        for n in self.results("total"):
            yield f"F sum{n} = 0;"
        yield "for (long long row = block * block_rows; row < end; row++) {"
        yield from self._row()
        yield "}"
        for n in self.results("total"):
            yield f"((F*)table[{self.layout.results[n]}])[block] = sum{n};"

    def _row(self) -> Iterator[str]:
        yield "const long long left = length - row * columns, count = left < columns ? left : columns;"
        yield from self.pointers()
        for k, number in enumerate(self.schedule.scratch):
            stored = STORED[self.type(number)]
            yield f"{stored}* RESTRICT kept{k} = ({stored}*)((F*)table[{self.layout.scratch}] + {k} * padded);"
        for sweep in self.schedule.sweeps:
            yield from self.between(sweep.before)
            yield from self._sweep(sweep)
        yield from self.between(self.schedule.after)
        for n in self.results("row"):
            yield f"*result{n} = {self.name(self.fused.results[n].value)};"
        for n in self.results("total"):
            yield f"sum{n} += {self.name(self.fused.results[n].value)};"

    def _sweep(self, sweep: Sweep) -> Iterator[str]:
        for i in sweep.reductions:
            first = FIRST[self.fused.instructions[i].op]
            yield f"F r{i}[{self.lanes}]; for (int l = 0; l < {self.lanes}; l++) r{i}[l] = {first};"
        yield f"for (long long c = 0; c < count; c += {self.lanes}) {{"
        yield f"const int some = count - c < {self.lanes} ? (int)(count - c) : {self.lanes};"
        yield "for (int l = 0; l < some; l++) {"
        yield from self._body(sweep)
        yield "}\n}"
        for i in sweep.reductions:
            combined = self.combined(i, f"r{i}[l]", f"r{i}[l + h]")
            yield f"for (int h = {self.lanes // 2}; h; h /= 2) for (int l = 0; l < h; l++) r{i}[l] = {combined};"
            yield f"const F v{i} = r{i}[0];"

    def _body(self, sweep: Sweep) -> Iterator[str]:
        for number in sweep.fetched:
            kept = self.schedule.scratch.index(number)
            yield f"const {NAMES[self.type(number)]} v{number} = kept{kept}[c + l];"
        yield from self.computed(sweep, "c + l")
        for number in sweep.saved:
            yield f"kept{self.schedule.scratch.index(number)}[c + l] = {self.name(number)};"
        for n in sweep.results:
            value = self.name(self.fused.results[n].value)
            stored = self.fused.results[n].kind == "element"
            yield f"result{n}[c + l] = {value};" if stored else f"part{n}[c + l] += {value};"
        for i in sweep.reductions:
            yield self.reduced(i, f"r{i}[l]")
