"""LLVM IR of a fused kernel: blocks, rows, sweeps in explicit vectors, and a masked vector for the end of a row.

The text needs no optimisation passes: LLVM's code generator is applied to it directly.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from engine.codegen.kernels.assembly import Assembly, CarriedValue, KernelMemory, LoopNames
from engine.codegen.kernels.program import (
    PAIR_PARTS,
    FusedKernel,
    Scalars,
    Schedule,
    Sweep,
    TableEntry,
    TableLayout,
    extreme,
    refuse_pairs,
    schedule,
    table_layout,
)

_BINARY: Final = {
    "add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "and": "and", "or": "or",
    "iadd": "add", "isub": "sub", "iand": "and", "ior": "or", "ixor": "xor", "shl": "shl", "ashr": "ashr",
}  # fmt: skip
_COMPARISONS: Final = {
    "lt": "fcmp olt", "le": "fcmp ole", "gt": "fcmp ogt", "ge": "fcmp oge", "eq": "fcmp oeq", "ne": "fcmp une",
    "ieq": "icmp eq", "ilt": "icmp slt",
}  # fmt: skip
_INTRINSICS: Final = {
    "abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint", "copysign": "copysign",
    "fma": "fma",
}  # fmt: skip


def literal(number: float, type: Scalars) -> str:
    """Print a number as an LLVM constant; a float of either width is printed as the bits of a double."""
    if type == "float":
        return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"
    return str(int(number))


def instruction(ir: Assembly, fused: FusedKernel, number: int, args: Sequence[str], lanes: int = 0) -> str:
    """Write the primitive of scalar `number` on these operands; return the name of its result."""
    op, operands = fused.instructions[number].op, fused.instructions[number].args
    type = fused.instructions[operands[0]].type
    operand_type, floats, bools = ir.name(type, lanes), ir.name("float", lanes), ir.name("bool", lanes)
    if op in PAIR_PARTS:
        return ir.paired(args[0], args[1], lanes) if op == "pair" else ir.part(args[0], lanes, int(op == "imag"))
    refuse_pairs(fused, number)
    if op in _BINARY:
        return ir.value(f"{_BINARY[op]} {operand_type} {args[0]}, {args[1]}")
    if op in _COMPARISONS:
        return ir.value(f"{_COMPARISONS[op]} {operand_type} {args[0]}, {args[1]}")
    if op in _INTRINSICS:
        name = f"llvm.{_INTRINSICS[op]}.{ir.suffix('float', lanes)}"
        ir.declare(floats, name, *(floats for _ in args))
        return ir.value(f"call {floats} @{name}(" + ", ".join(f"{floats} {a}" for a in args) + ")")
    if op in ("select", "choose"):
        result_type = ir.name(fused.instructions[number].type, lanes)
        return ir.value(f"select {bools} {args[0]}, {result_type} {args[1]}, {result_type} {args[2]}")
    if op in ("bits", "from_bits"):
        return ir.value(f"bitcast {operand_type} {args[0]} to {ir.name(fused.instructions[number].type, lanes)}")
    if op in ("neg", "not"):
        true = "splat (i1 true)" if lanes else "true"
        return ir.value(f"fneg {floats} {args[0]}" if op == "neg" else f"xor {bools} {args[0]}, {true}")
    comparison = extreme(fused, number)
    by_number = dict(zip(operands, args, strict=True))
    first, second = by_number[comparison.first], by_number[comparison.second]
    if comparison.takes_ties:
        return _select_if(ir, "oge" if op == "maximum" else "ole", first, second, lanes)
    return larger(ir, op, first, second, lanes, sees_nan=comparison.sees_nan)


def larger(ir: Assembly, op: str, first: str, second: str, lanes: int, *, sees_nan: bool = True) -> str:
    """Write the larger of two floats (for "minimum" the smaller) as in `Extreme`; of equal floats, the second."""
    floats, bools = ir.name("float", lanes), ir.name("bool", lanes)
    larger_one = _select_if(ir, "ogt" if op == "maximum" else "olt", first, second, lanes)
    if not sees_nan:
        return larger_one
    nan = ir.value(f"fcmp uno {floats} {first}, {first}")
    return ir.value(f"select {bools} {nan}, {floats} {first}, {floats} {larger_one}")


def _select_if(ir: Assembly, comparison: str, first: str, second: str, lanes: int) -> str:
    """Write `first` if it compares as stated with `second`, else `second`."""
    floats, bools = ir.name("float", lanes), ir.name("bool", lanes)
    condition = ir.value(f"fcmp {comparison} {floats} {first}, {second}")
    return ir.value(f"select {bools} {condition}, {floats} {first}, {floats} {second}")


#: initial values of reductions
FIRST_FLOATS: Final = {"row_sum": 0.0, "row_prod": 1.0, "row_max": float("-inf"), "row_min": float("inf")}
_REDUCTION_INSTRUCTIONS = {"row_sum": "fadd", "row_prod": "fmul"}


def llvm_text(fused: FusedKernel, lanes: int) -> str:
    """Write a module with `void kernel(int64 first_block, int64 past_block, const int64* table)` for the host.

    The kernel has no FUNCTIONS. Vectors have `lanes` elements, a power of two. A row is reduced in that many lanes,
    which are then combined by halves.
    """
    ir = Assembly(fused.dtype)
    text = KernelText(fused, lanes, schedule(fused), table_layout(fused), ir, KernelMemory(ir))
    text.kernel()
    return ir.module


@dataclass(eq=False, slots=True)
class KernelText:
    """A kernel that is being written. With 0 lanes, elements are scalars."""

    fused: FusedKernel
    lanes: int
    schedule: Schedule
    layout: TableLayout
    ir: Assembly
    memory: KernelMemory
    #: IR names of the scalars of the current row
    row: dict[int, str] = field(default_factory=dict)
    #: axes and IR names of the current row's indices along them
    indices: list[tuple[int, str]] = field(default_factory=list)

    def kernel(self) -> None:
        """Write the whole kernel."""
        self._read_table()
        with self.ir.loop(loop_names("block", "blocks", "block.begin", "end"), "%first", "%past"):
            self._block()
            for n in self._results("total"):
                self._store_sum(f"%sum{n}", f"%result{n}", "%block")

    # the table

    def _read_table(self) -> None:
        for size in ("columns", "length", "rows", "block_rows"):
            self.memory.word(TableEntry[size.upper()], "i64", f"%{size}")
        for axis in range(1, self.fused.row_axes):
            self.memory.word(TableEntry.EXTENTS + axis, "i64", f"%extent{axis}")
        for name, position, strided in self._arrays():
            self.memory.word(position, "ptr", f"%{name}")
            for axis in range(self.fused.row_axes if strided else 0):
                self.memory.word(position + 1 + axis, "i64", f"%{name}.stride{axis}")
        if self.schedule.scratch:
            self._read_scratch()

    def _read_scratch(self) -> None:
        self.memory.word(self.layout.scratch, "ptr", "%scratch")
        self.ir.value(f"add i64 %columns, {self.lanes - 1}", "%padded.up")
        self.ir.value(f"and i64 %padded.up, {-self.lanes}", "%padded")
        for k in range(len(self.schedule.scratch)):
            self.ir.value(f"mul i64 %padded, {k}", f"%kept{k}.at")
            self.memory.offset("%scratch", self.ir.name("float"), f"%kept{k}.at", f"%kept{k}")
            self.memory.part(f"%kept{k}", self.ir.name("float"), "%padded")

    def _arrays(self) -> list[tuple[str, int, bool]]:
        """List operands and results: name, position in the table, whether the array has strides."""
        operands = [(f"operand{n}", position, True) for n, position in enumerate(self.layout.operands)]
        return operands + [
            (f"result{n}", position, not result.adds_up)
            for n, (position, result) in enumerate(zip(self.layout.results, self.fused.results, strict=True))
        ]

    # blocks

    def _block(self) -> None:
        """Write a block: its first and last row, zeros for its parts of column sums, and its rows."""
        self.ir.value("mul i64 %block, %block_rows", "%row.first")
        self.ir.value("add i64 %row.first, %block_rows", "%row.most")
        self.ir.minimum("%row.most", "%rows", "%row.past")
        self.ir.value("mul i64 %block, %columns", "%part")
        columns = self._results("columns")
        for n in columns:
            self.memory.offset(f"%result{n}", self.ir.name("float"), "%part", f"%part{n}")
        # Column sums are accumulated in memory row by row, so a block's part begins with zeros.
        if columns:
            with self.ir.loop(loop_names("z", "zero.head", "zero", "zero.end"), 0, "%columns"):
                for n in columns:
                    self._store_sum(literal(0.0, "float"), f"%part{n}", "%z")
        self.ir.label("block.rows")
        totals = [
            CarriedValue(f"%sum{n}", self.ir.name("float"), literal(0.0, "float")) for n in self._results("total")
        ]
        rows = loop_names("row", "rows.head", "row.begin", "block.end")
        with self.ir.loop(rows, "%row.first", "%row.past", carried=totals) as given:
            self._row()
            given.extend(f"{total.name}.next" for total in totals)
            self.ir.label("row.end")

    def _results(self, kind: str) -> list[int]:
        return [n for n, result in enumerate(self.fused.results) if result.kind == kind]

    # rows

    def _begin_row(self) -> None:
        """Write the address of `%row` in each array, and the row's number of elements, `%count`."""
        self.row.clear()
        self._point_at_row()
        self.ir.value("mul i64 %row, %columns", "%start")
        self.ir.value("sub i64 %length, %start", "%left")
        self.ir.minimum("%columns", "%left", "%count")

    def _row(self) -> None:
        self._begin_row()
        # `lanes` is a power of two, so clearing the low bits gives the number of columns in whole vectors.
        self.ir.value(f"and i64 %count, {-self.lanes}", "%whole")
        if self.lanes > 1:
            self.ir.value("sub i64 %count, %whole", "%tail")
            self.ir.value("icmp ne i64 %tail, 0", "%tail.any")
        self._columns()

    def _columns(self) -> None:
        """Write all computations of a row."""
        for number, sweep in enumerate(self.schedule.sweeps):
            self._between(sweep.before)
            self._sweep(number, sweep)
        self._between(self.schedule.after)
        for n in self._results("row"):
            value = self.fused.results[n].value
            self._store(self._scalar(value), self._type(value), f"%result{n}.row")
        for n in self._results("total"):
            # The total so far is a value carried by the loop over rows.
            summand = self._scalar(self.fused.results[n].value)
            self.ir.value(f"fadd {self.ir.name('float')} %sum{n}, {summand}", f"%sum{n}.next")

    def _point_at_row(self) -> None:
        """Write the address of this row in each array. Only several row axes need divisions."""
        remaining = "%row"
        self.indices.clear()
        for axis in range(self.fused.row_axes - 1, 0, -1):
            # Unravel the row's number from the last axis on. IR is not optimised, so the remainder reuses the quotient.
            quotient = self.ir.value(f"udiv i64 {remaining}, %extent{axis}")
            whole = self.ir.value(f"mul i64 {quotient}, %extent{axis}")
            self.indices.append((axis, self.ir.value(f"sub i64 {remaining}, {whole}")))
            remaining = quotient
        self.indices.extend([(0, remaining)] if self.fused.row_axes else [])
        types = [operand.type for operand in self.fused.operands]
        types += [self._type(result.value) for result in self.fused.results]
        for (name, _, strided), type in zip(self._arrays(), types, strict=True):
            if strided:
                offset = "0"
                for axis, index in self.indices:
                    step = self.ir.value(f"mul i64 {index}, %{name}.stride{axis}")
                    offset = self.ir.value(f"add i64 {offset}, {step}")
                self.memory.offset(f"%{name}", self.ir.stored(type), offset, f"%{name}.row")

    def _type(self, number: int) -> Scalars:
        return self.fused.instructions[number].type

    def _between(self, numbers: Sequence[int]) -> None:
        """Write the ROW scalars between two sweeps."""
        for number in numbers:
            scalar = self.fused.instructions[number]
            if scalar.op == "load":
                self.row[number] = self._load(scalar.type, f"%operand{scalar.data}.row")
            else:
                self.row[number] = instruction(self.ir, self.fused, number, [self._scalar(a) for a in scalar.args])

    def _scalar(self, number: int) -> str:
        scalar = self.fused.instructions[number]
        return literal(scalar.data, scalar.type) if scalar.op == "constant" else self.row[number]

    # sweeps

    def _sweep(self, p: int, sweep: Sweep) -> None:
        """Write a pass over the row; its reductions become scalars of the row."""
        # Reductions are carried through the loop as vectors and become one number by halves at the end. So the order of
        # a sum, and its bits, depend on the lanes alone.
        self.ir.label(f"s{p}.begin")
        floats = self.ir.name("float", self.lanes)
        reduced = [CarriedValue(f"%r{i}", floats, self._first(i)) for i in sweep.reductions]
        names = loop_names(f"c{p}", f"s{p}.head", f"s{p}", f"s{p}.rest")
        with self.ir.loop(names, 0, "%whole", self.lanes, reduced) as next_values:
            next_values.extend(self._reduced(sweep, self._body(sweep, names.counter)))
        if self.lanes > 1:
            self._tail(p, sweep)
        for i in sweep.reductions:
            vector = f"%r{i}" + (".end" if self.lanes > 1 else "")
            self.row[i] = self.ir.halved(vector, self.lanes, partial(self._combined, i))

    def _tail(self, p: int, sweep: Sweep) -> None:
        """Write the end of the row as one masked vector."""
        with self.ir.when("%tail.any", f"s{p}.tail", f"s{p}.end"):
            mask = self._mask()
            reduced = self._reduced(sweep, self._body(sweep, "%whole", mask), mask)
        floats = self.ir.name("float", self.lanes)
        for i, name in zip(sweep.reductions, reduced, strict=True):
            self.ir.value(f"phi {floats} [ %r{i}, %s{p}.rest ], [ {name}, %s{p}.tail ]", f"%r{i}.end")

    def _first(self, reduction: int) -> str:
        start = literal(FIRST_FLOATS[self.fused.instructions[reduction].op], "float")
        return f"splat ({self.ir.name('float')} {start})"

    def _mask(self) -> str:
        """Write the mask of the last vector's lanes that belong to the row."""
        words = f"<{self.lanes} x i32>"
        remaining = self.ir.value("trunc i64 %tail to i32")
        count = self.ir.splat(remaining, "i32", self.lanes)
        lanes = ", ".join(f"i32 {i}" for i in range(self.lanes))
        return self.ir.value(f"icmp ult {words} <{lanes}>, {count}")

    def _body(self, sweep: Sweep, column: str, mask: str = "") -> list[str]:
        """Compute, save and store one vector of each scalar of a sweep; return the vectors that its reductions take."""
        vectors = self._computed(sweep, column, mask)
        for number in sweep.saved:
            self._store(vectors[number], self._type(number), self._scratch_pointer(number, column), self.lanes)
        for n in sweep.results:
            self._store_result(n, self._vector(self.fused.results[n].value, vectors), column, mask)
        return [self._vector(self.fused.instructions[i].args[0], vectors) for i in sweep.reductions]

    def _computed(self, sweep: Sweep, column: str, mask: str = "") -> dict[int, str]:
        """Fetch or compute one vector of each scalar of a sweep; return their names by number."""
        vectors: dict[int, str] = {}
        for number in sweep.fetched:
            vectors[number] = self._load(self._type(number), self._scratch_pointer(number, column), self.lanes)
        for number in sweep.computed:
            scalar = self.fused.instructions[number]
            if scalar.op == "load":
                pointer = self._at(f"%operand{scalar.data}.row", scalar.type, column)
                vectors[number] = self._load(scalar.type, pointer, self.lanes, mask)
            else:
                args = [self._vector(a, vectors) for a in scalar.args]
                vectors[number] = instruction(self.ir, self.fused, number, args, self.lanes)
        return vectors

    def _vector(self, number: int, vectors: dict[int, str]) -> str:
        """Return a scalar in all lanes. ROW scalars are broadcast at their use, since registers are scarce."""
        scalar = self.fused.instructions[number]
        if not self.lanes:
            return vectors[number] if number in vectors else self._scalar(number)
        if scalar.op == "constant":
            return f"splat ({self.ir.name(scalar.type)} {literal(scalar.data, scalar.type)})"
        if number not in vectors:
            vectors[number] = self.ir.splat(self._scalar(number), self.ir.name(self._type(number)), self.lanes)
        return vectors[number]

    def _store_result(self, n: int, value: str, column: str, mask: str) -> None:
        result = self.fused.results[n]
        type = self._type(result.value)
        if result.kind == "element":
            self._store(value, type, self._at(f"%result{n}.row", type, column), self.lanes, mask)
            return
        pointer, floats = self._at(f"%part{n}", "float", column), self.ir.name("float", self.lanes)
        so_far = self._load("float", pointer, self.lanes, mask)
        self._store(self.ir.value(f"fadd {floats} {so_far}, {value}"), "float", pointer, self.lanes, mask)

    def _reduced(self, sweep: Sweep, vectors: Sequence[str], mask: str = "") -> list[str]:
        """Combine each reduction with one more vector. Lanes beyond the row take the initial value."""
        floats, bools, reductions = self.ir.name("float", self.lanes), self.ir.name("bool", self.lanes), []
        for i, vector in zip(sweep.reductions, vectors, strict=True):
            inside = f"select {bools} {mask}, {floats} {vector}, {floats} {self._first(i)}"
            reductions.append(self._combined(i, self.ir.value(inside) if mask else vector, f"%r{i}", self.lanes))
        return reductions

    def _combined(self, i: int, first: str, second: str, lanes: int) -> str:
        op = self.fused.instructions[i].op
        if op in _REDUCTION_INSTRUCTIONS:
            return self.ir.value(f"{_REDUCTION_INSTRUCTIONS[op]} {self.ir.name('float', lanes)} {second}, {first}")
        return larger(self.ir, "maximum" if op == "row_max" else "minimum", first, second, lanes)

    # memory

    def _at(self, base: str, type: Scalars, index: str) -> str:
        return self.memory.offset(base, self.ir.stored(type), index)

    def _scratch_pointer(self, number: int, column: str) -> str:
        return self._at(f"%kept{self.schedule.scratch.index(number)}", self._type(number), column)

    def _load(self, type: Scalars, pointer: str, lanes: int = 0, mask: str = "") -> str:
        if type == "pair":
            return self.memory.load(self.ir.name("float"), pointer, 2 * (lanes or 1), self._of_parts(mask))
        value = self.memory.load(self.ir.stored(type), pointer, lanes, mask)
        # In memory, a bool is a byte.
        zero = "zeroinitializer" if lanes else "0"
        return self.ir.value(f"icmp ne {self.ir.stored(type, lanes)} {value}, {zero}") if type == "bool" else value

    def _store(self, value: str, type: Scalars, pointer: str, lanes: int = 0, mask: str = "") -> None:
        if type == "pair":
            self.memory.store(self.ir.name("float"), value, pointer, 2 * (lanes or 1), self._of_parts(mask))
            return
        if type == "bool":
            value = self.ir.value(f"zext {self.ir.name(type, lanes)} {value} to {self.ir.stored(type, lanes)}")
        self.memory.store(self.ir.stored(type), value, pointer, lanes, mask)

    def _of_parts(self, mask: str) -> str:
        """Convert a mask of pairs to a mask of their parts."""
        lanes = ", ".join(f"i32 {i // 2}" for i in range(2 * self.lanes))
        bools = self.ir.name("bool", self.lanes)
        return mask and self.ir.value(
            f"shufflevector {bools} {mask}, {bools} poison, <{2 * self.lanes} x i32> <{lanes}>"
        )

    def _store_sum(self, value: str, base: str, index: str) -> None:
        self.memory.store(self.ir.name("float"), value, self._at(base, "float", index), says_align=False)


def loop_names(counter: str, head: str, body: str, past: str) -> LoopNames:
    """Return the names of a loop that counts up, by 1 or another step."""
    return LoopNames(f"%{counter}", head, body, past, f"%{counter}.more", f"%{counter}.next")
