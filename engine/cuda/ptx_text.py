"""A fused kernel as LLVM IR for nvptx64-nvidia-cuda: kernels, lanes and order of `cuda_text`, hence the same bits.

An element is computed with the instructions of the CPU's text, one element at a time. None may be contracted or flushed
to zero, so LLVM prints `add.rn`, `mul.rn`, `div.rn` and `sqrt.rn`, which no assembler contracts.

Kernels have one argument, a table by value. Intrinsics are those of LLVM's NVPTX: "User Guide for NVPTX Back-end";
shuffles are described in the PTX ISA, `shfl.sync`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from engine.codegen.kernels.assembly import Assembly, CarriedValue, KernelMemory
from engine.codegen.kernels.llvm_text import FIRST_FLOATS, KernelText, literal, loop_names
from engine.codegen.kernels.program import FusedKernel, Scalars, Schedule, Sweep, schedule, table_layout
from engine.codegen.kernels.recurrence import Recurrence, RecurrenceText, recurrence_layout
from engine.cuda.cuda_text import LONG, SUM_ENTRIES, SUMS_HEAD, WARP, CudaParts, has_reductions, table_entries

#: metadata on the back edge of a loop that must not be unrolled
_NO_UNROLL: Final = ", !llvm.loop !0"
_TAIL: Final = """\
attributes #0 = { nounwind convergent "no-trapping-math"="true" }
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
"""
_ALL_LANES: Final = -1
#: table entries of the kernels in SUMS: rows, rows of a block and blocks; then addends, result, and columns of a sum
_ROWS, _BLOCK_ROWS, _BLOCKS = range(SUMS_HEAD)
_ADDENDS, _RESULT, _COLUMNS = range(SUMS_HEAD, SUMS_HEAD + SUM_ENTRIES)
#: NumPy's pairwise sum: number of accumulators, and number of addends above which the sum is halved
_SIDE_BY_SIDE: Final = 8
_PAIRWISE_BLOCK: Final = 128
_ZERO: Final = literal(0.0, "float")
#: maximum number of arrays to whose rows a thread keeps pointers in its 255 registers: with more, the assembler takes
#: five times as long
MAX_ROW_POINTERS: Final = 24

GridAxis = Literal["x", "y"]


class CardFunction(NamedTuple):
    """Function of a module: its signature without `define`, and its text up to `ret`."""

    head: str
    ir: Assembly


class Stride(NamedTuple):
    """Stride of a thread through shared work: its first item, and the step to the next."""

    first: str
    step: str


class CardThreads:
    """Writer of instructions that read a thread's indices and exchange values within its warp."""

    def __init__(self, ir: Assembly) -> None:
        self._ir = ir

    def register(self, name: str) -> str:
        """Read a special register as i64: tid, ntid, ctaid or nctaid along an axis, as in `tid.x`."""
        intrinsic = f"llvm.nvvm.read.ptx.sreg.{name}"
        self._ir.declare("i32", intrinsic)
        return self._ir.value(f"zext i32 {self._ir.value(f'call i32 @{intrinsic}()')} to i64")

    def stride(self, axis: GridAxis) -> Stride:
        """Return the stride over items with one thread along the axis for each."""
        return self.groups(axis, axis)

    def groups(self, blocks: GridAxis, threads: GridAxis, each: int = 1) -> Stride:
        """Return the stride over items, `each` per thread: blocks along one axis, and their threads along another."""
        high = self.register(f"ntid.{threads}")
        before = self._ir.value(f"mul i64 {self.register(f'ctaid.{blocks}')}, {high}")
        first = self._ir.value(f"add i64 {before}, {self.register(f'tid.{threads}')}")
        step = self._ir.value(f"mul i64 {self.register(f'nctaid.{blocks}')}, {high}")
        if each == 1:
            return Stride(first, step)
        return Stride(self._ir.value(f"mul i64 {first}, {each}"), self._ir.value(f"mul i64 {step}, {each}"))

    def is_first(self) -> str:
        """Test whether this is the first thread along x, of all blocks."""
        indices = self._ir.value(f"or i64 {self.register('ctaid.x')}, {self.register('tid.x')}")
        return self._ir.value(f"icmp eq i64 {indices}, 0")

    def shuffle_down(self, value: str, distance: int, width: int) -> str:
        """Read a float from the thread `distance` lanes above in a group of `width`, or else the thread's own."""
        return self._shuffle("down", value, distance, width)

    def broadcast(self, value: str, width: int) -> str:
        """Read a float from the first thread of a group of `width`."""
        return self._shuffle("idx", value, 0, width)

    def _shuffle(self, mode: str, value: str, lane: int, width: int) -> str:
        """Shuffle word by word. The last operand encodes the width of a group and the last lane of a warp."""
        ir, type = self._ir, self._ir.name("float")
        name, bounds = f"llvm.nvvm.shfl.sync.{mode}.i32", (WARP - width) << 8 | (WARP - 1)
        ir.declare("i32", name, "i32", "i32", "i32", "i32")
        bits = ir.value(f"bitcast {type} {value} to i{ir.bits}")
        words = [bits]
        if ir.bits == 64:
            words = [ir.value(f"trunc i64 {part} to i32") for part in (bits, ir.value(f"lshr i64 {bits}, 32"))]
        received = [ir.value(f"call i32 @{name}(i32 {_ALL_LANES}, i32 {w}, i32 {lane}, i32 {bounds})") for w in words]
        if ir.bits == 64:
            low, high = (ir.value(f"zext i32 {word} to i64") for word in received)
            received = [ir.value(f"or i64 {ir.value(f'shl i64 {high}, 32')}, {low}")]
        return ir.value(f"bitcast i{ir.bits} {received[0]} to {type}")


def unroll_metadata(kernel: FusedKernel) -> str:
    """Return the metadata for the back edge of a loop over elements: long loops are not unrolled."""
    return _NO_UNROLL if len(kernel.instructions) >= LONG else ""


def card_kernel(name: str, entries: int, ir: Assembly) -> CardFunction:
    """End a kernel whose table has `entries` entries, and return its function."""
    ir.line("ret void")
    return CardFunction(f"ptx_kernel void @{name}(ptr byval([{entries} x i64]) align 8 %table)", ir)


def card_module(functions: Iterable[CardFunction]) -> str:
    """Return a module with these functions."""
    lines, declared = list[str](), set[str]()
    for head, ir in functions:
        lines += [f"define {head} #0 {{", "entry:", *ir.lines, "}"]
        declared |= ir.declarations
    return "\n".join((*lines, *sorted(declared), _TAIL))


def ptx_sums(dtype: str, entries: int, names: Container[str]) -> Iterator[CardFunction]:
    """Yield the kernels of SUMS in `wanted`, and the function that they call. Their tables have `entries` entries."""
    for name, text in ("add_rows", _AddRows(dtype)), ("add_parts", _AddParts(dtype)):
        if name in names:
            text.kernel()
            yield card_kernel(name, entries, text.ir)
    if "add_parts" in names:
        pairwise = _Pairwise(dtype)
        pairwise.function()
        yield CardFunction(f"internal {pairwise.float} @pairwise(ptr %a, i64 %n)", pairwise.ir)


class _Sum:
    """Writer of a function that adds up."""

    def __init__(self, dtype: str) -> None:
        self.ir = Assembly(dtype)
        self.memory = KernelMemory(self.ir, checkable=False)
        self.threads = CardThreads(self.ir)
        self.float = self.ir.name("float")

    def read_table(self) -> None:
        """Read the sizes, and the addresses of the sum whose index is this block's along y."""
        for position, name in (_ROWS, "rows"), (_BLOCK_ROWS, "block_rows"), (_BLOCKS, "blocks"):
            self.memory.word(position, "i64", f"%{name}")
        moved = self.ir.value(f"mul i64 {self.threads.register('ctaid.y')}, {SUM_ENTRIES}")
        self.memory.word(_ADDENDS, "ptr", "%a", moved)
        self.memory.word(_RESULT, "ptr", "%sums", moved)
        self.memory.word(_COLUMNS, "i64", "%columns", moved)

    def addend(self, index: str) -> str:
        return self.memory.load(self.float, self.memory.offset("%a", self.float, index))

    def sum(self, first: str = _ZERO) -> CarriedValue:
        """Return the sum that a loop carries."""
        return CarriedValue("%sum", self.float, first)

    def add(self, a: str, b: str) -> str:
        return self.ir.value(f"fadd {self.float} {a}, {b}")

    def merge(self, name: str, block: str, else_from: str, else_sum: str, done: str, else_done: str = "0") -> None:
        """Merge the sum so far, and its number of addends, after a block that may have been skipped."""
        for part, type, value, else_value in ("sum", self.float, name, else_sum), ("done", "i64", done, else_done):
            self.ir.value(f"phi {type} [ {value}, %{block} ], [ {else_value}, %{else_from} ]", f"{name}.{part}")

    def store(self, value: str, index: str) -> None:
        self.memory.store(self.float, value, self.memory.offset("%sums", self.float, index))


class _AddRows(_Sum):
    """Kernel `add_rows`: the addends of a block of rows, in order."""

    def kernel(self) -> None:
        self.read_table()
        first, step = self.threads.stride("x")
        with self.ir.loop(loop_names("block", "blocks.head", "block.begin", "end"), first, "%blocks", step):
            self.ir.value("mul i64 %block, %block_rows", "%row.first")
            self.ir.minimum(self.ir.value("add i64 %row.first, %block_rows"), "%rows", "%row.past")
            rows = loop_names("row", "rows.head", "row.begin", "block.end")
            with self.ir.loop(rows, "%row.first", "%row.past", carried=[self.sum()]) as updated:
                updated.append(self.add("%sum", self.addend("%row")))
            self.store("%sum", "%block")


class _AddParts(_Sum):
    """Kernel `add_parts`: as NumPy adds up the first of two axes; a single column as it adds up one axis."""

    def kernel(self) -> None:
        self.read_table()
        self.ir.value("icmp eq i64 %columns, 1", "%is_one")
        first, step = self.threads.stride("x")
        with self.ir.loop(loop_names("c", "columns.head", "column", "end"), first, "%columns", step):
            with self.ir.when("%is_one", "pairwise", "parts"):
                self.ir.value(f"call {self.float} @pairwise(ptr %a, i64 %blocks)", "%all")
            self.merge("%all", "pairwise", "column", _ZERO, "%blocks")
            blocks = loop_names("b", "blocks.head", "block", "column.end")
            with self.ir.loop(blocks, "%all.done", "%blocks", carried=[self.sum("%all.sum")]) as updated:
                before = self.ir.value("mul i64 %b, %columns")
                updated.append(self.add("%sum", self.addend(self.ir.value(f"add i64 {before}, %c"))))
            self.store("%sum", "%c")


class _Pairwise(_Sum):
    """Function `pairwise(a, n)`, which calls itself for halves."""

    def function(self) -> None:
        ir = self.ir
        self.memory.given("%a", _ADDENDS)
        ir.value(f"and i64 %n, {-_SIDE_BY_SIDE}", "%whole")
        with ir.when(ir.value(f"icmp sgt i64 %n, {_PAIRWISE_BLOCK}", "%is_many"), "halves", "parts"):
            self._by_halves()
        self.merge("%halved", "halves", "entry", _ZERO, "%n")
        ir.value(f"icmp sge i64 %n, {_SIDE_BY_SIDE}", "%is_some")
        ir.value("xor i1 %is_many, true", "%is_no_more")
        with ir.when(ir.value("and i1 %is_some, %is_no_more"), "side_by_side", "rest"):
            eighths = self._side_by_side()
        self.merge(eighths, "eighths.past", "parts", "%halved.sum", "%whole", "%halved.done")
        names = loop_names("i", "rest.head", "rest.one", "rest.past")
        with ir.loop(names, f"{eighths}.done", "%n", carried=[self.sum(f"{eighths}.sum")]) as updated:
            updated.append(self.add("%sum", self.addend("%i")))
        ir.line(f"ret {self.float} %sum")

    def _by_halves(self) -> None:
        ir = self.ir
        ir.value("lshr i64 %n, 1", "%middle")
        ir.value(f"and i64 %middle, {-_SIDE_BY_SIDE}", "%low")
        ir.value("sub i64 %n, %low", "%high")
        above = self.memory.offset("%a", self.float, "%low")
        low = ir.value(f"call {self.float} @pairwise(ptr %a, i64 %low)")
        high = ir.value(f"call {self.float} @pairwise(ptr {above}, i64 %high)")
        ir.value(f"fadd {self.float} {low}, {high}", "%halved")

    def _side_by_side(self) -> str:
        """Add up eight interleaved sums, combine them pairwise, and return the name of the result."""
        firsts = [self.addend(str(k)) for k in range(_SIDE_BY_SIDE)]
        sums = [CarriedValue(f"%r{k}", self.float, first) for k, first in enumerate(firsts)]
        names = loop_names("e", "eighths.head", "eighths", "eighths.past")
        with self.ir.loop(names, _SIDE_BY_SIDE, "%whole", _SIDE_BY_SIDE, sums) as updated:
            for k, (name, _, _) in enumerate(sums):
                updated.append(self.add(name, self.addend(self.ir.value(f"add i64 %e, {k}"))))
        values = [name for name, _, _ in sums]
        while len(values) > 2:
            values = [self.add(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
        self.ir.value(f"fadd {self.float} {values[0]}, {values[1]}", "%by_eighths")
        return "%by_eighths"


def ptx_text(parts: CudaParts, lanes: int, sums: Container[str]) -> str:
    """Return a module with the kernels of `cuda_text`, for the same launches, and those of SUMS in `wanted`.

    The parts must not use FUNCTIONS.
    """
    entries, functions = table_entries(parts), list[CardFunction]()
    if parts.rows is not None:
        functions.append(card_kernel("rows", entries, _rows(parts.rows, parts.flags, lanes)))
    if (kernel := parts.columns) is not None:
        ir = Assembly(kernel.dtype)
        memory, passes = KernelMemory(ir, checkable=False), schedule(kernel, use_scratch=False)
        _Columns(kernel, 0, passes, table_layout(kernel), ir, memory).kernel()
        functions.append(card_kernel("columns", entries, ir))
    if (kernel := parts.rows or parts.columns) is not None:
        functions += ptx_sums(kernel.dtype, entries, sums)
    return card_module(functions)


def _rows(kernel: FusedKernel, flags: bool, lanes: int) -> Assembly:
    ir, flag = Assembly(kernel.dtype), len(kernel.results) - 1 if flags else None
    memory, passes = KernelMemory(ir, checkable=False), schedule(kernel, use_scratch=False)
    if has_reductions(kernel):
        team, each = min(lanes, WARP), max(1, lanes // WARP)
        _Teams(kernel, 0, passes, table_layout(kernel), ir, memory, flag=flag, team=team, each=each).kernel()
    else:
        _Elements(kernel, 0, passes, table_layout(kernel), ir, memory, flag=flag).kernel()
    return ir


class _OnCard(KernelText):
    """Base of kernels. With many arrays, they compute an element's address where it is used.

    A row pointer takes two registers for as long as it lives. Freezing the index keeps LLVM from strength-reducing the
    address to such a pointer.
    """

    __slots__ = ()

    def _at(self, base: str, type: Scalars, index: str) -> str:
        array = base.removesuffix(".row")
        if array == base or len(self.fused.operands) + len(self.fused.results) <= MAX_ROW_POINTERS:
            return super()._at(base, type, index)
        offset = self.ir.value(f"freeze i64 {index}")
        for axis, number in self.indices:
            row_index = self.ir.value(f"freeze i64 {number}")
            step = self.ir.value(f"mul i64 {row_index}, {array}.stride{axis}")
            offset = self.ir.value(f"add i64 {offset}, {step}")
        return super()._at(array, type, offset)


@dataclass(eq=False, slots=True, kw_only=True)
class _Rows(_OnCard):
    """Kernel `rows`: results of the kinds element and row, the last of which may be a flag."""

    flag: int | None

    def _store_result(self, n: int, value: str, column: str, mask: str) -> None:
        if n == self.flag:
            self._tell(n, value, column.removeprefix("%"))
        else:
            super(_Rows, self)._store_result(n, value, column, mask)

    def _tell(self, n: int, value: str, label: str) -> None:
        with self.ir.when(value, f"{label}.tell", f"{label}.told"):
            self.memory.store("i8", "1", f"%result{n}.row")

    def _row_results(self, where: str) -> None:
        """Store the results of a row, in the threads for which `where` holds."""
        with self.ir.when(where, "row.store", "row.end"):
            self._between(self.schedule.after)
            for n in self._results("row"):
                value = self.fused.results[n].value
                if n == self.flag:
                    self._tell(n, self._scalar(value), "row")
                else:
                    self._store(self._scalar(value), self._type(value), f"%result{n}.row")


class _Elements(_Rows):
    """Kernel `rows` in which each thread has its own elements."""

    __slots__ = ()

    def kernel(self) -> None:
        threads = CardThreads(self.ir)
        self._read_table()
        down, along, is_first = threads.stride("y"), threads.stride("x"), threads.is_first()
        with self.ir.loop(loop_names("row", "rows.head", "row.begin", "end"), down.first, "%rows", down.step):
            self._begin_row()
            for p, sweep in enumerate(self.schedule.sweeps):
                self._between(sweep.before)
                names = loop_names(f"c{p}", f"s{p}.head", f"s{p}", f"s{p}.past")
                with self.ir.loop(names, along.first, "%count", along.step, metadata=unroll_metadata(self.fused)):
                    self._body(sweep, names.counter)
            self._row_results(is_first)


@dataclass(eq=False, slots=True, kw_only=True)
class _Teams(_Rows):
    """Kernel `rows` in which a team of threads of a warp has its own rows, and each thread `each` lanes."""

    team: int
    each: int

    def kernel(self) -> None:
        """Write the function. All threads of a warp run all of it, because of the shuffles.

        Threads without a row take the last one, with no elements of their own.
        """
        threads = CardThreads(self.ir)
        self._read_table()
        self.ir.value(f"and i64 {threads.register('tid.x')}, {self.team - 1}", "%lane")
        self.ir.value(f"lshr i64 {threads.register('tid.x')}, {self.team.bit_length() - 1}", "%team")
        rows = threads.groups("x", "y", WARP // self.team)
        with self.ir.loop(loop_names("first", "rows.head", "row.begin", "end"), rows.first, "%rows", rows.step):
            self.ir.value("add i64 %first, %team", "%own")
            self.ir.value("icmp slt i64 %own, %rows", "%there")
            self.ir.value("sub i64 %rows, 1", "%last")
            self.ir.value("select i1 %there, i64 %own, i64 %last", "%row")
            self._begin_row()
            self.ir.value("select i1 %there, i64 %count, i64 0", "%some")
            for p, sweep in enumerate(self.schedule.sweeps):
                self._between(sweep.before)
                self._pass(p, sweep, threads)
            leads = self.ir.value("icmp eq i64 %lane, 0")
            self._row_results(self.ir.value(f"and i1 %there, {leads}"))

    def _pass(self, p: int, sweep: Sweep, threads: CardThreads) -> None:
        """Write a sweep over the row; its reductions become scalars of the row."""
        firsts = [FIRST_FLOATS[self.fused.instructions[i].op] for i in sweep.reductions]
        reduced = [
            CarriedValue(f"%r{i}.{k}", self.ir.name("float"), literal(first, "float"))
            for k in range(self.each)
            for i, first in zip(sweep.reductions, firsts, strict=True)
        ]
        names = loop_names(f"c{p}", f"s{p}.head", f"s{p}", f"s{p}.past")
        lanes, metadata = self.team * self.each, unroll_metadata(self.fused)
        with self.ir.loop(names, "%lane", "%some", lanes, reduced, metadata) as updated:
            updated.extend(self._lane(0, sweep, names.counter))
            for k in range(1, self.each):
                updated.extend(self._further_lane(p, k, sweep, names.counter))
        for i in sweep.reductions:
            self.row[i] = self._combine_lanes(i, threads)

    def _further_lane(self, p: int, k: int, sweep: Sweep, first: str) -> list[str]:
        """Compute an element of a further lane if the row has it, and return its reductions."""
        index = self.ir.value(f"add i64 {first}, {k * self.team}", f"{first}.{k}")
        inside, begin_block = self.ir.value(f"icmp slt i64 {index}, %some"), self.ir.block
        with self.ir.when(inside, f"s{p}.lane{k}", f"s{p}.past{k}"):
            reduced = self._lane(k, sweep, index)
            end_block = self.ir.block
        type = self.ir.name("float")
        return [
            self.ir.value(f"phi {type} [ {value}, %{end_block} ], [ %r{i}.{k}, %{begin_block} ]")
            for i, value in zip(sweep.reductions, reduced, strict=True)
        ]

    def _lane(self, k: int, sweep: Sweep, index: str) -> list[str]:
        values = self._body(sweep, index)
        return [self._combined(i, value, f"%r{i}.{k}", 0) for i, value in zip(sweep.reductions, values, strict=True)]

    def _combine_lanes(self, i: int, threads: CardThreads) -> str:
        """Combine the lanes of a reduction: halve their number until one is left, and broadcast it."""
        values = [f"%r{i}.{k}" for k in range(self.each)]
        while len(values) > 1:
            half = len(values) // 2
            values = [self._combined(i, values[k], values[k + half], 0) for k in range(half)]
        combined = values[0]
        distance = self.team // 2
        while distance:
            combined = self._combined(i, combined, threads.shuffle_down(combined, distance, self.team), 0)
            distance //= 2
        return threads.broadcast(combined, self.team)


class _Columns(_OnCard):
    """Kernel `columns`: each thread adds up one column of one block, row after row."""

    __slots__ = ()

    def kernel(self) -> None:
        items = CardThreads(self.ir).stride("x")
        self._read_table()
        self.ir.value("add i64 %rows, %block_rows", "%rows.up")
        self.ir.value("sub i64 %rows.up, 1", "%rows.most")
        self.ir.value("udiv i64 %rows.most, %block_rows", "%blocks")
        self.ir.value("mul i64 %blocks, %columns", "%items")
        with self.ir.loop(loop_names("item", "items.head", "item.begin", "end"), items.first, "%items", items.step):
            self._item()

    def _item(self) -> None:
        numbers, float = self._results("columns"), self.ir.name("float")
        self._begin_item()
        sums = [CarriedValue(f"%sum{n}", float, literal(0.0, "float")) for n in numbers]
        rows = loop_names("row", "rows.head", "row.begin", "item.end")
        with self.ir.loop(rows, "%row.first", "%row.past", 1, sums, unroll_metadata(self.fused)) as updated:
            self.row.clear()
            self._point_at_row()
            computed = dict[int, str]()
            for sweep in self.schedule.sweeps:
                self._between(sweep.before)
                computed |= self._computed(sweep, "%c")
            for n in numbers:
                addend = self._vector(self.fused.results[n].value, computed)
                updated.append(self.ir.value(f"fadd {float} %sum{n}, {addend}"))
        for n in numbers:
            self._store_sum(f"%sum{n}", f"%result{n}", "%item")

    def _begin_item(self) -> None:
        """Compute the column of an item, and the rows of its block that have this column."""
        self.ir.value("udiv i64 %item, %columns", "%block")
        self.ir.value("mul i64 %block, %columns", "%block.start")
        self.ir.value("sub i64 %item, %block.start", "%c")
        self.ir.value("mul i64 %block, %block_rows", "%row.first")
        block_end = self.ir.value("add i64 %row.first, %block_rows")
        self.ir.minimum(block_end, "%rows", "%row.most")
        # row * columns + c < length
        remaining = self.ir.value("sub i64 %length, %c")
        upwards = self.ir.value(f"add i64 {remaining}, {self.ir.value('sub i64 %columns, 1')}")
        self.ir.minimum("%row.most", self.ir.value(f"udiv i64 {upwards}, %columns"), "%row.past")


def ptx_recurrence_text(recurrence: Recurrence) -> str:
    """Return a module with the kernel `steps` of `cuda_recurrence_text`. Its steps must not use FUNCTIONS."""
    ir, layout, nothing = Assembly(recurrence.fused.dtype), recurrence_layout(recurrence), Schedule((), (), ())
    memory = KernelMemory(ir, checkable=False)
    text = _Steps(recurrence.fused, 0, nothing, layout.kernel, ir, memory, recurrence=recurrence, places=layout)
    text.kernel()
    return card_module([card_kernel("steps", layout.size, ir)])


class _Steps(RecurrenceText):
    """Kernel `steps`: each thread runs all steps of its elements."""

    __slots__ = ()

    def kernel(self) -> None:
        threads = CardThreads(self.ir)
        self._read_table()
        down, along = threads.stride("y"), threads.stride("x")
        with self.ir.loop(loop_names("row", "rows.head", "row.begin", "end"), down.first, "%rows", down.step):
            self._begin_row()
            columns = loop_names("c", "columns.head", "columns.body", "columns.past")
            with self.ir.loop(columns, along.first, "%count", along.step):
                self._elements("c", "%c")

    def _clear_flag(self) -> None:
        """Do nothing: threads begin at any time, so the launch clears the flag."""
