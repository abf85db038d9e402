"""A fused kernel as CUDA C: with the same lanes and order of sums as on a CPU, so the results are equal bit for bit.

It must be compiled without contraction: `--fmad=false`. Words in capitals are macros that differ between dialects: with
other definitions, a C compiler accepts the text, too. Kernels have one argument, a table, and no shared memory: threads
that exchange values are in one warp.

A GPU thread computes few elements, and synchronising threads is expensive. So a fused kernel is split (`CudaParts`)
into a kernel `rows`, which goes row by row, and sums over rows. The addends of a total are stored, one per row, and
added up by separate kernels (SUMS). Sums of `columns` are computed by a kernel of that name: the thread that adds up a
column recomputes its addends, from the reductions of each row that `rows` has stored.

    softmax over rows, and its sum over rows:
    rows      a warp for each row: max, sum, element results; stores max and sum of the row
    columns   a thread for each column of a block of rows: exp(x - max) / sum, added up in the order of the rows
    add_parts the sums of the blocks, added as NumPy adds them

A recurrence is one kernel `steps`, each of whose threads runs all steps of an element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from engine.codegen.kernels.c_text import EXTREMES, FIRST, CKernel
from engine.codegen.kernels.compiled import range_condition
from engine.codegen.kernels.program import (
    REDUCTIONS,
    FusedKernel,
    Instruction,
    KernelBuilder,
    Level,
    Scalar,
    Sweep,
    schedule,
    table_layout,
)
from engine.codegen.kernels.recurrence import CRecurrence, Recurrence, recurrence_layout

#: threads of a warp
WARP: Final = 32
#: options that affect results: no contraction, subnormal numbers kept, division and square root as in IEEE 754
OPTIONS: Final = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
#: number of instructions from which a loop is not unrolled: it would take the compiler seconds, and hide no latency
LONG: Final = 300
#: maximum number of sums in one launch
SUMS_AT_ONCE: Final = 64
#: entries of the table of a kernel in SUMS: rows, rows of a block and blocks; then for each sum, the address of its
#: addends or parts, the address of the result, and its columns
SUMS_HEAD: Final = 3
SUM_ENTRIES: Final = 3

_DEVICE: Final = """\
typedef {float} F; typedef {int} I; typedef unsigned {int} U; struct P {{ F real, imag; }};
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__
#define GIVEN const struct Table given
#define TABLE given.at
#define RESTRICT __restrict__
#define PAIR(re, im) P{{re, im}}
#define GRID_X gridDim.x
#define GRID_Y gridDim.y
#define BLOCK_X blockIdx.x
#define BLOCK_Y blockIdx.y
#define WIDE blockDim.x
#define HIGH blockDim.y
#define THREAD_X threadIdx.x
#define THREAD_Y threadIdx.y
#define FROM_ABOVE(value, by, width) __shfl_down_sync(0xffffffffu, value, by, width)
#define FROM_FIRST(value, width) __shfl_sync(0xffffffffu, value, 0, width)
#define ABS fabs{suffix}
#define SQRT sqrt{suffix}
#define FLOOR floor{suffix}
#define CEIL ceil{suffix}
#define RINT rint{suffix}
#define COPYSIGN copysign{suffix}
#define FMA fma{suffix}
#define BITS {bits}
#define FROM_BITS {from_bits}
#define INFINITE FROM_BITS({infinite})
#define NOT_A_NUMBER FROM_BITS({nan})
"""
_WORDS: Final = {
    "float32": {
        "float": "float",
        "int": "int",
        "suffix": "f",
        "bits": "__float_as_int",
        "from_bits": "__int_as_float",
        "infinite": "0x7f800000",
        "nan": "0x7fc00000",
    },
    "float64": {
        "float": "double",
        "int": "long long",
        "suffix": "",
        "bits": "__double_as_longlong",
        "from_bits": "__longlong_as_double",
        "infinite": "0x7ff0000000000000LL",
        "nan": "0x7ff8000000000000LL",
    },
}
#: add_rows adds up a block of rows, in order; add_parts adds up the parts, as NumPy adds up one axis (pairwise) or the
#: first of two axes. A launch has several sums, numbered along y. One thread adds up all parts of a single column
SUMS: Final = """\
KERNEL add_rows(GIVEN) {
const long long* const table = TABLE; const long long* const given_sum = table + 3 + 3 * BLOCK_Y;
const F* const addends = (const F*)given_sum[0]; F* const sums = (F*)given_sum[1];
const long long rows = table[0], block_rows = table[1], blocks = table[2];
for (long long block = BLOCK_X * (long long)WIDE + THREAD_X; block < blocks; block += GRID_X * (long long)WIDE) {
const long long most = (block + 1) * block_rows, end = most < rows ? most : rows;
F sum = 0;
for (long long row = block * block_rows; row < end; row++) sum += addends[row];
sums[block] = sum;
}
}
DEVICE F pairwise(const F* a, long long n) {
if (n < 8) { F sum = 0; for (long long i = 0; i < n; i++) sum += a[i]; return sum; }
if (n > 128) { const long long half = n / 2 - n / 2 % 8; return pairwise(a, half) + pairwise(a + half, n - half); }
F r[8]; long long i = 8;
for (int k = 0; k < 8; k++) r[k] = a[k];
for (; i < n - n % 8; i += 8) for (int k = 0; k < 8; k++) r[k] += a[i + k];
F sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
for (; i < n; i++) sum += a[i];
return sum;
}
KERNEL add_parts(GIVEN) {
const long long* const table = TABLE; const long long* const given_sum = table + 3 + 3 * BLOCK_Y;
const F* const parts = (const F*)given_sum[0]; F* const sums = (F*)given_sum[1];
const long long columns = given_sum[2], blocks = table[2];
for (long long c = BLOCK_X * (long long)WIDE + THREAD_X; c < columns; c += GRID_X * (long long)WIDE) {
F sum = 0;
if (columns == 1) sum = pairwise(parts, blocks);
else for (long long block = 0; block < blocks; block++) sum += parts[block * columns + c];
sums[c] = sum;
}
}
"""


class CudaParts(NamedTuple):
    """Fused kernel without FUNCTIONS, split into two parts; either may be None.

    `rows` has these results in order: those of the kinds element and row; the addends of each total, as a row result;
    the reductions that `columns` reads; and if `flags`, a bool, whether any argument is out of range. `columns` has the
    column results; its operands are those of the kernel, then these reductions.
    """

    rows: FusedKernel | None
    columns: FusedKernel | None
    #: for each result of the kernel, its index in its part
    places: tuple[int, ...]
    #: indices of the results of `rows` that are reductions for `columns`
    saved: tuple[int, ...]
    flags: bool


def cuda_parts(kernel: FusedKernel, *, reports_range: bool = False) -> CudaParts:
    """Split a fused kernel; if `reports_range`, its last result is the total that counts arguments out of range."""
    flag = range_condition(kernel) if reports_range else None
    results = kernel.results[:-1] if reports_range else kernel.results
    needed = _reductions(kernel, [result.value for result in results if result.kind == "columns"])
    rows, columns = _Copy(kernel), _Copy(kernel, needed)
    places = tuple(
        columns.store("columns", result.value)
        if result.kind == "columns"
        else rows.store("row" if result.kind == "total" else result.kind, result.value)
        for result in results
    )
    saved = tuple(rows.store("row", number) for number in needed)
    if flag is not None:
        rows.store("element" if kernel.instructions[flag].level == Level.ELEMENT else "row", flag)
    return CudaParts(rows.kernel(), columns.kernel(), places, saved, flag is not None)


def _reductions(kernel: FusedKernel, roots: Sequence[int]) -> list[int]:
    """Return the nearest reductions on which these scalars depend."""
    reductions, pending, visited = set[int](), list(roots), set[int]()
    while pending:
        number = pending.pop()
        if number in visited:
            continue
        visited.add(number)
        if kernel.instructions[number].op in REDUCTIONS:
            reductions.add(number)
        else:
            pending += kernel.instructions[number].args
    return sorted(reductions)


class _Copy:
    """Copy of the scalars that a part needs; the scalars in `read` become operands."""

    def __init__(self, kernel: FusedKernel, read: Sequence[int] = ()) -> None:
        self._kernel = kernel
        self._builder = KernelBuilder(kernel.dtype, kernel.row_axes)
        self._loads = [self._builder.load(operand.level, operand.type) for operand in kernel.operands]
        self._scalars: dict[int, Scalar] = {number: self._builder.load(Level.ROW) for number in read}

    def store(self, kind: Literal["element", "row", "columns"], number: int) -> int:
        """Make a scalar a result, and return its index."""
        return self._builder.store(kind, self._scalar(number))

    def kernel(self) -> FusedKernel | None:
        """Return the fused kernel; None if nothing was stored."""
        return self._builder.build() if self._builder.results else None

    def _scalar(self, number: int) -> Scalar:
        # An explicit stack, since a kernel may be deeper than Python's recursion limit.
        pending = [number]
        while pending:
            instruction = self._kernel.instructions[pending[-1]]
            missing = [a for a in instruction.args if a not in self._scalars]
            if pending[-1] in self._scalars or not missing:
                top = pending.pop()
                if top not in self._scalars:
                    self._scalars[top] = self._copied(instruction)
            else:
                pending += missing
        return self._scalars[number]

    def _copied(self, instruction: Instruction) -> Scalar:
        if instruction.op == "load":
            operand: int = instruction.data
            return self._loads[operand]
        if instruction.op == "constant":
            is_int = instruction.type == "int"
            return self._builder.integer(instruction.data) if is_int else self._builder.constant(instruction.data)
        return self._builder.apply(instruction.op, *(self._scalars[a] for a in instruction.args))


def cuda_text(parts: CudaParts, lanes: int) -> str:
    """Return a file for NVRTC with the kernels `rows` and `columns`, if the parts have them, and SUMS.

    Each kernel takes a table of `table_entries` 64-bit numbers by value. The parts must not use FUNCTIONS. A row is
    summed in `lanes` partial sums, a power of two, which are then combined pairwise.
    """
    kernel = parts.rows or parts.columns
    assert kernel is not None
    table = f"struct Table {{ long long at[{table_entries(parts)}]; }};\n"
    return cuda_definitions(kernel.dtype) + table + cuda_kernels(parts, lanes) + SUMS


def cuda_definitions(dtype: str) -> str:
    """Return the macro definitions of kernels for NVRTC."""
    return _DEVICE.format(**_WORDS[dtype]) + EXTREMES


def cuda_kernels(parts: CudaParts, lanes: int) -> str:
    """Return the kernels `rows` and `columns` without the definitions of their dialect."""
    lines: list[str] = []
    if parts.rows is not None:
        lines += _Rows(parts.rows, parts.flags, lanes).kernel()
    if parts.columns is not None:
        lines += _Columns(parts.columns).kernel()
    return "\n".join(lines) + "\n"


def table_entries(parts: CudaParts) -> int:
    """Return the number of entries of these kernels' tables, with room for a sum of each result."""
    sums = SUMS_HEAD + SUM_ENTRIES * min(len(parts.places), SUMS_AT_ONCE)
    return max(sums, *(table_layout(kernel).size for kernel in (parts.rows, parts.columns) if kernel is not None))


def has_reductions(kernel: FusedKernel) -> bool:
    """Return whether threads of a row exchange values. If so, a warp computes whole rows, else a thread any element."""
    return any(instruction.op in REDUCTIONS for instruction in kernel.instructions)


def _unrolled(kernel: FusedKernel, times: int) -> str:
    return f"#pragma unroll {times if len(kernel.instructions) < LONG else 1}"


class _Rows(CKernel):
    """Text of `rows`: results of the kinds element and row, the last of which may be a flag."""

    def __init__(self, kernel: FusedKernel, flags: bool, lanes: int) -> None:
        super().__init__(kernel, schedule(kernel, use_scratch=False))
        self.flag = len(kernel.results) - 1 if flags else None
        self.lanes = lanes
        #: threads that share a row, and lanes of each of them
        self.team, self.each = min(lanes, WARP), max(1, lanes // WARP)

    def kernel(self) -> Iterator[str]:
        yield "KERNEL rows(GIVEN) {\nconst long long* const table = TABLE;"
        yield from self.sizes()
        yield from self._in_teams() if has_reductions(self.fused) else self._by_elements()
        yield "}"

    def _by_elements(self) -> Iterator[str]:
        """Write the loop in which each thread has its own elements."""
        step = "GRID_Y * (long long)HIGH"
        yield f"for (long long row = BLOCK_Y * (long long)HIGH + THREAD_Y; row < rows; row += {step}) {{"
        yield "const long long left = length - row * columns, count = left < columns ? left : columns;"
        yield from self.pointers()
        for sweep in self.schedule.sweeps:
            yield from self.between(sweep.before)
            yield _unrolled(self.fused, 4)
            step = "GRID_X * (long long)WIDE"
            yield f"for (long long c = BLOCK_X * (long long)WIDE + THREAD_X; c < count; c += {step}) {{"
            yield from self._body(sweep)
            yield "}"
        yield "if (BLOCK_X == 0 && THREAD_X == 0) {"
        yield from self._row_results()
        yield "}\n}"

    def _in_teams(self) -> Iterator[str]:
        """Write the loop in which each team has its own rows.

        All threads of a warp run all of it, because of the shuffles; those without a row process the last one.
        """
        yield f"const int lane = THREAD_X % {self.team}, team = THREAD_X / {self.team};"
        yield f"const long long step = GRID_X * (long long)HIGH * {WARP // self.team};"
        yield f"long long first = (BLOCK_X * (long long)HIGH + THREAD_Y) * {WARP // self.team};"
        yield "for (; first < rows; first += step) {"
        yield "const int there = first + team < rows;"
        yield "const long long row = there ? first + team : rows - 1, left = length - row * columns;"
        yield "const long long count = !there ? 0 : left < columns ? left : columns;"
        yield from self.pointers()
        for sweep in self.schedule.sweeps:
            yield from self.between(sweep.before)
            yield from self._sweep(sweep)
        yield "if (there && lane == 0) {"
        yield from self._row_results()
        yield "}\n}"

    def _sweep(self, sweep: Sweep) -> Iterator[str]:
        for i in sweep.reductions:
            first = FIRST[self.fused.instructions[i].op]
            yield f"F r{i}[{self.each}]; for (int k = 0; k < {self.each}; k++) r{i}[k] = {first};"
        yield _unrolled(self.fused, 2)
        yield f"for (long long start = lane; start < count; start += {self.lanes}) {{"
        yield f"#pragma unroll\nfor (int k = 0; k < {self.each}; k++) {{"
        yield f"const long long c = start + k * {self.team};\nif (c < count) {{"
        yield from self._body(sweep)
        yield "}\n}\n}"
        for i in sweep.reductions:
            yield from self._combine_lanes(i)

    def _combine_lanes(self, i: int) -> Iterator[str]:
        """Combine the lanes of a reduction: halve their number until one is left, and broadcast it."""
        halved = self.combined(i, f"r{i}[k]", f"r{i}[k + h]")
        yield f"#pragma unroll\nfor (int h = {self.each // 2}; h; h /= 2)"
        yield f"for (int k = 0; k < h; k++) r{i}[k] = {halved};"
        yield f"#pragma unroll\nfor (int h = {self.team // 2}; h; h /= 2) {{"
        yield f"const F above = FROM_ABOVE(r{i}[0], h, {self.team});"
        yield f"r{i}[0] = {self.combined(i, f'r{i}[0]', 'above')};\n}}"
        yield f"const F v{i} = FROM_FIRST(r{i}[0], {self.team});"

    def _body(self, sweep: Sweep) -> Iterator[str]:
        yield from self.computed(sweep, "c")
        for n in sweep.results:
            value = self.name(self.fused.results[n].value)
            yield f"if ({value}) *result{n} = 1;" if n == self.flag else f"result{n}[c] = {value};"
        for i in sweep.reductions:
            yield self.reduced(i, f"r{i}[{'k' if has_reductions(self.fused) else 0}]")

    def _row_results(self) -> Iterator[str]:
        yield from self.between(self.schedule.after)
        for n in self.results("row"):
            value = self.name(self.fused.results[n].value)
            yield f"if ({value}) *result{n} = 1;" if n == self.flag else f"*result{n} = {value};"


class _Columns(CKernel):
    """Text of `columns`: each thread adds up one column of one block, row after row."""

    def __init__(self, kernel: FusedKernel) -> None:
        super().__init__(kernel, schedule(kernel, use_scratch=False))

    def kernel(self) -> Iterator[str]:
        yield "KERNEL columns(GIVEN) {\nconst long long* const table = TABLE;"
        yield from self.sizes()
        yield "const long long items = (rows + block_rows - 1) / block_rows * columns;"
        step = "GRID_X * (long long)WIDE"
        yield f"for (long long item = BLOCK_X * (long long)WIDE + THREAD_X; item < items; item += {step}) {{"
        yield "const long long block = item / columns, c = item % columns;"
        yield "const long long most = (block + 1) * block_rows, end = most < rows ? most : rows;"
        for n in self.results("columns"):
            yield f"F sum{n} = 0;"
        yield _unrolled(self.fused, 4)
        yield "for (long long row = block * block_rows; row < end; row++) {"
        yield "if (row * columns + c >= length) break;"
        yield from self.pointers()
        for sweep in self.schedule.sweeps:
            yield from self.between(sweep.before)
            yield from self.computed(sweep, "c")
        for n in self.results("columns"):
            yield f"sum{n} += {self.name(self.fused.results[n].value)};"
        yield "}"
        for n in self.results("columns"):
            yield f"((F*)table[{self.layout.results[n]}])[item] = sum{n};"
        yield "}\n}"


def cuda_recurrence_text(recurrence: Recurrence) -> str:
    """Return a file for NVRTC with the kernel `steps`, which takes a table by value. It must not use FUNCTIONS."""
    table = f"struct Table {{ long long at[{recurrence_layout(recurrence).size}]; }};\n"
    return cuda_definitions(recurrence.fused.dtype) + table + cuda_steps(recurrence)


def cuda_steps(recurrence: Recurrence) -> str:
    """Return the kernel `steps` without the definitions of its dialect."""
    return "\n".join(_Steps(recurrence).kernel()) + "\n"


class _Steps(CRecurrence):
    """Text of `steps`: each thread has its own elements."""

    def kernel(self) -> Iterator[str]:
        yield "KERNEL steps(GIVEN) {\nconst long long* const table = TABLE;"
        yield from self.sizes()
        yield from self.steps()
        step = "GRID_Y * (long long)HIGH"
        yield f"for (long long row = BLOCK_Y * (long long)HIGH + THREAD_Y; row < rows; row += {step}) {{"
        yield "const long long left = length - row * columns, count = left < columns ? left : columns;"
        yield from self.pointers()
        step = "GRID_X * (long long)WIDE"
        yield f"for (long long c = BLOCK_X * (long long)WIDE + THREAD_X; c < count; c += {step}) {{"
        yield from self.element("c")
        yield "}\n}\n}"
