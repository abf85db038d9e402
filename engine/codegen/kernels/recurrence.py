"""Recurrences: a fused kernel as the step of a loop, with all iterations inside the compiled kernel.

The client's scan (c, x[t]) → (c, y[t]) with an elementwise body is a kernel whose results include the carries of the
next step. Without reductions, elements do not depend on one another. So the two loops are exchanged: the outer loop
goes over vectors of elements, the inner one over time, and the carries of an element stay in registers:

    for each vector of elements:            c = load initial carry
        for t in 0 … steps − 1:             c, y = step(c, x[t]);  store y to entry t
                                            store c to the final carry

Recurrences are printed as LLVM IR (`RecurrenceText`) and as C (`CRecurrence`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.codegen.kernels.assembly import Assembly, CarriedValue, KernelMemory
from engine.codegen.kernels.c_text import NAMES, CKernel
from engine.codegen.kernels.compiled import range_condition
from engine.codegen.kernels.llvm_text import KernelText, instruction, loop_names
from engine.codegen.kernels.program import (
    FusedKernel,
    Level,
    Scalars,
    Schedule,
    Space,
    TableLayout,
    put_space,
    table_layout,
)
from engine.codegen.native.native_call import BOUNDS
from engine.ir.tensor_type import HostArray


class Carry(NamedTuple):
    """Number of the operand that holds a carry, and of the result that replaces it in the next step."""

    operand: int
    result: int


class Recurrence(NamedTuple):
    """A kernel used as a loop step; all results are of kind `element`. Equal ones are equal, and `repr` is complete.

    Operands that are no carries are the same in all steps, except the `moving` ones, which have an entry for each step.
    Results that are no carries have an entry for each step, or one entry that each step overwrites.

    `out_of_range`, if not None, is the number of the scalar that is true in steps that must be recomputed by a
    fallback.
    """

    fused: FusedKernel
    carries: tuple[Carry, ...]
    moving: tuple[int, ...]
    out_of_range: int | None = None

    def with_expansion(self, expanded: FusedKernel) -> Recurrence:
        """Replace the kernel by its expansion, whose last result may count arguments out of range."""
        if len(expanded.results) == len(self.fused.results):
            return self._replace(fused=expanded)
        without_count = expanded._replace(results=expanded.results[:-1])
        return self._replace(fused=without_count, out_of_range=range_condition(expanded))

    @property
    def stored(self) -> list[int]:
        """Results that each step writes to memory."""
        carried = {carry.result for carry in self.carries}
        return [n for n in range(len(self.fused.results)) if n not in carried]

    def varying(self) -> set[int]:
        """Return the scalars that differ between steps."""
        varying, moving = set[int](), {*self.moving, *(carry.operand for carry in self.carries)}
        # Instructions only read earlier ones, so a single pass finds all that depend on a moving operand.
        for number, scalar in enumerate(self.fused.instructions):
            if scalar.data in moving if scalar.op == "load" else not varying.isdisjoint(scalar.args):
                varying.add(number)
        return varying

    def needed(self) -> list[int]:
        """List the scalars that results depend on, in order, without constants."""
        pending = [result.value for result in self.fused.results]
        pending += [] if self.out_of_range is None else [self.out_of_range]
        reached = set[int]()
        while pending:
            number = pending.pop()
            if number not in reached:
                reached.add(number)
                pending += self.fused.instructions[number].args
        return [number for number in sorted(reached) if self.fused.instructions[number].op != "constant"]


class RecurrenceLayout(NamedTuple):
    """Positions in a recurrence's table: those of its kernel, then the number of steps, then strides per step.

    Entries of `operands` and `results` are the elements by which an array advances from step to step. `flag` is the
    position of the address of a byte that is set to 1 if a step is out of range.
    """

    kernel: TableLayout
    steps: int

    @property
    def operands(self) -> range:
        """Positions of the operands' strides per step."""
        return range(self.steps + 1, self.steps + 1 + len(self.kernel.operands))

    @property
    def results(self) -> range:
        """Positions of the results' strides per step."""
        return range(self.operands.stop, self.operands.stop + len(self.kernel.results))

    @property
    def flag(self) -> int:
        """Position of the flag's address."""
        return self.results.stop

    @property
    def size(self) -> int:
        """Number of entries of the table."""
        return self.flag + 1


def recurrence_layout(recurrence: Recurrence) -> RecurrenceLayout:
    """Lay out a recurrence's table."""
    kernel_layout = table_layout(recurrence.fused)
    return RecurrenceLayout(kernel_layout, kernel_layout.size)


def recurrence_table(recurrence: Recurrence, space: Space, steps: int, entries: Sequence[int]) -> HostArray:
    """Return a table without addresses. `entries` are the elements between steps for each operand, then each result."""
    layout = recurrence_layout(recurrence)
    tables = BOUNDS.tables(1, layout.size)
    put_space(tables, layout.kernel, space)
    table: HostArray = tables[0]
    table[layout.steps] = steps
    table[layout.operands.start : layout.results.stop] = entries
    return table


def recurrence_text(recurrence: Recurrence, lanes: int) -> str:
    """Write a module with `void kernel(int64 first_block, int64 past_block, const int64* table)` for the host.

    The step has no FUNCTIONS. A carry starts from its operand and ends in its result, which may share memory with it.
    """
    ir, layout = Assembly(recurrence.fused.dtype), recurrence_layout(recurrence)
    no_sweeps = Schedule((), (), ())
    text = RecurrenceText(
        recurrence.fused, lanes, no_sweeps, layout.kernel, ir, KernelMemory(ir), recurrence=recurrence, places=layout
    )
    text.kernel()
    return ir.module


@dataclass(eq=False, slots=True, kw_only=True)
class RecurrenceText(KernelText):
    """A recurrence that is being written. With 0 lanes, elements are scalars."""

    recurrence: Recurrence
    places: RecurrenceLayout

    def _read_table(self) -> None:
        super(RecurrenceText, self)._read_table()
        self.memory.word(self.places.steps, "i64", "%steps")
        for n in self.recurrence.moving:
            self.memory.word(self.places.operands[n], "i64", f"%operand{n}.entry")
        for n in self.recurrence.stored:
            self.memory.word(self.places.results[n], "i64", f"%result{n}.entry")
        if self.recurrence.out_of_range is not None:
            self.memory.word(self.places.flag, "ptr", "%flag")
            self._clear_flag()

    def _clear_flag(self) -> None:
        self.memory.store("i8", "0", "%flag")

    def _columns(self) -> None:
        with self.ir.loop(loop_names("c", "columns.head", "columns.body", "columns.rest"), 0, "%whole", self.lanes):
            self._elements("c", "%c")
        if self.lanes > 1:
            with self.ir.when("%tail.any", "rest.begin", "rest.past"):
                self._elements("tail", "%whole", self._mask())

    def _elements(self, name: str, column: str, mask: str = "") -> None:
        """Write all steps of one vector of elements. IR names of its loop begin with `name`."""
        # Scalars that are the same in all steps are computed once, before the loop over time.
        varying, needed, vectors = self.recurrence.varying(), self.recurrence.needed(), dict[int, str]()
        self._compute([i for i in needed if i not in varying], vectors, column, mask)
        carries = [self._begun(k, f"%{name}.carry{k}", column, mask) for k in range(len(self.recurrence.carries))]
        if self.recurrence.out_of_range is not None:
            carries.append(CarriedValue(f"%{name}.far", self.ir.name("bool", self.lanes), "zeroinitializer"))
        steps = loop_names(f"{name}.t", f"{name}.head", f"{name}.step", f"{name}.past")
        with self.ir.loop(steps, 0, "%steps", 1, carries) as next_values:
            # In the step, loads of carry operands are the values carried by the loop. Not strict: the last value may be
            # the out-of-range flag, which belongs to no operand.
            names = {carry.operand: c.name for carry, c in zip(self.recurrence.carries, carries, strict=False)}
            scalars = enumerate(self.fused.instructions)
            vectors |= {n: names[scalar.data] for n, scalar in scalars if scalar.op == "load" and scalar.data in names}
            self._compute([i for i in needed if i in varying], vectors, column, mask, steps.counter)
            next_values.extend(self._stepped(vectors, column, mask, steps.counter, f"%{name}.far"))
        # The final carries are stored once, after the loop over time.
        for (_, result), carry in zip(self.recurrence.carries, carries, strict=False):
            type = self._type(self.fused.results[result].value)
            self._store(carry.name, type, self._at(f"%result{result}.row", type, column), self.lanes, mask)
        if self.recurrence.out_of_range is not None:
            self._set_flag(f"%{name}.far", name, mask)

    def _begun(self, k: int, name: str, column: str, mask: str) -> CarriedValue:
        operand = self.recurrence.carries[k].operand
        type = self.fused.operands[operand].type
        first = self._load(type, self._at(f"%operand{operand}.row", type, column), self.lanes, mask)
        return CarriedValue(name, self.ir.name(type, self.lanes), first)

    def _compute(self, numbers: Sequence[int], vectors: dict[int, str], column: str, mask: str, step: str = "") -> None:
        """Write ROW scalars, and ELEMENT scalars as vectors; within a `step`, moving operands are read at its entry."""
        for number in numbers:
            scalar = self.fused.instructions[number]
            if number in vectors:
                continue
            if scalar.level == Level.ELEMENT:
                vectors[number] = self._vector_of(number, vectors, column, mask, step)
            elif scalar.op == "load":
                pointer = self._entry(f"operand{scalar.data}", f"%operand{scalar.data}.row", scalar.type, step)
                self.row[number] = self._load(scalar.type, pointer)
            else:
                self.row[number] = instruction(self.ir, self.fused, number, [self._scalar(a) for a in scalar.args])

    def _vector_of(self, number: int, vectors: dict[int, str], column: str, mask: str, step: str) -> str:
        scalar = self.fused.instructions[number]
        if scalar.op != "load":
            return instruction(self.ir, self.fused, number, [self._vector(a, vectors) for a in scalar.args], self.lanes)
        pointer = self._at(f"%operand{scalar.data}.row", scalar.type, column)
        return self._load(
            scalar.type, self._entry(f"operand{scalar.data}", pointer, scalar.type, step), self.lanes, mask
        )

    def _stepped(self, vectors: dict[int, str], column: str, mask: str, step: str, far: str) -> list[str]:
        """Store the results of a step; return the next carries, and the flag whether any element was out of range."""
        for n in self.recurrence.stored:
            value = self.fused.results[n].value
            type = self._type(value)
            pointer = self._entry(f"result{n}", self._at(f"%result{n}.row", type, column), type, step)
            self._store(self._vector(value, vectors), type, pointer, self.lanes, mask)
        next_values = [
            self._vector(self.fused.results[carry.result].value, vectors) for carry in self.recurrence.carries
        ]
        if self.recurrence.out_of_range is not None:
            condition = self._vector(self.recurrence.out_of_range, vectors)
            next_values.append(self.ir.value(f"or {self.ir.name('bool', self.lanes)} {far}, {condition}"))
        return next_values

    def _entry(self, array: str, pointer: str, type: Scalars, step: str) -> str:
        """Write the pointer into the entry of a step; an array with one entry for all steps keeps its pointer."""
        moving = {f"operand{n}" for n in self.recurrence.moving} | {f"result{n}" for n in self.recurrence.stored}
        if not step or array not in moving:
            return pointer
        return self.memory.entry(pointer, self.ir.stored(type), self.ir.value(f"mul i64 {step}, %{array}.entry"))

    def _set_flag(self, far: str, name: str, mask: str) -> None:
        """Set the flag if any element was out of range."""
        bools = self.ir.name("bool", self.lanes)
        is_any_far = self.ir.value(f"and {bools} {far}, {mask}") if mask else far
        if self.lanes:
            reduce = f"llvm.vector.reduce.or.v{self.lanes}i1"
            self.ir.declare("i1", reduce, bools)
            is_any_far = self.ir.value(f"call i1 @{reduce}({bools} {is_any_far})")
        with self.ir.when(is_any_far, f"{name}.tell", f"{name}.told"):
            self.memory.store("i8", "1", "%flag")


class CRecurrence(CKernel):
    """C of a recurrence, line by line: all steps of one element."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__(recurrence.fused, Schedule((), (), ()))
        self.recurrence = recurrence
        self.places = recurrence_layout(recurrence)
        self._step_positions = {f"operand{n}": self.places.operands[n] for n in recurrence.moving}
        self._step_positions |= {f"result{n}": self.places.results[n] for n in recurrence.stored}

    def steps(self) -> Iterator[str]:
        """Print the number of steps, and the elements by which each array advances per step."""
        yield f"const long long steps = table[{self.places.steps}];"
        for name, position in self._step_positions.items():
            yield f"const long long entry_{name} = table[{position}];"
        if self.recurrence.out_of_range is not None:
            yield f"unsigned char* const flag = (unsigned char*)table[{self.places.flag}];"

    def element(self, column: str) -> Iterator[str]:
        """Print all steps of the element in a column."""
        varying, needed = self.recurrence.varying(), self.recurrence.needed()
        yield from self._each([i for i in needed if i not in varying], column)
        for k, (operand, _) in enumerate(self.recurrence.carries):
            yield f"{NAMES[self.fused.operands[operand].type]} carry{k} = operand{operand}[{column}];"
        if self.recurrence.out_of_range is not None:
            yield "int far = 0;"
        yield "for (long long t = 0; t < steps; t++) {"
        yield from self._each([i for i in needed if i in varying], column)
        yield from self._stepped(column)
        yield "}"
        for k, (_, result) in enumerate(self.recurrence.carries):
            yield f"result{result}[{column}] = carry{k};"
        if self.recurrence.out_of_range is not None:
            yield "if (far) *flag = 1;"

    def _each(self, numbers: Iterable[int], element_column: str) -> Iterator[str]:
        carries = {carry.operand: k for k, carry in enumerate(self.recurrence.carries)}
        for number in numbers:
            scalar = self.fused.instructions[number]
            if scalar.op == "load" and scalar.data in carries:
                yield f"const {NAMES[scalar.type]} v{number} = carry{carries[scalar.data]};"
            else:
                column = element_column if scalar.level == Level.ELEMENT else "0"
                yield self._defined(number, self._entry(f"operand{scalar.data}", column))

    def _entry(self, name: str, column: str) -> str:
        return f"{column} + t * entry_{name}" if name in self._step_positions else column

    def _stepped(self, column: str) -> Iterator[str]:
        """Print the results of a step, and then its carries: all are read before any is replaced."""
        for n in self.recurrence.stored:
            yield f"result{n}[{self._entry(f'result{n}', column)}] = {self.name(self.fused.results[n].value)};"
        for k, (_, result) in enumerate(self.recurrence.carries):
            value = self.fused.results[result].value
            yield f"const {NAMES[self.type(value)]} next{k} = {self.name(value)};"
        for k in range(len(self.recurrence.carries)):
            yield f"carry{k} = next{k};"
        if self.recurrence.out_of_range is not None:
            yield f"far |= {self.name(self.recurrence.out_of_range)};"
