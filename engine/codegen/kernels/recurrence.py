"""Recurrences: a fused kernel as a step, gone through in order with its carries, printed as LLVM IR and as C.

The results of a step that are carries are operands of the next one. Where nothing is reduced, elements know nothing of
one another. So a kernel goes through the elements outside, and through time inside, with the carries of an element in
registers.
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
from engine.codegen.native.native_call import WATCHED
from engine.ir.tensor_type import HostArray


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

    loop: FusedKernel
    carries: tuple[Carry, ...]
    moving: tuple[int, ...]
    out_of_range: int | None = None

    def ranged(self, expanded: FusedKernel) -> Recurrence:
        """Replace the kernel by one whose functions are written out; its last result may count what is out of range."""
        if len(expanded.results) == len(self.loop.results):
            return self._replace(loop=expanded)
        own = expanded._replace(results=expanded.results[:-1])
        return self._replace(loop=own, out_of_range=range_condition(expanded))

    @property
    def stored(self) -> list[int]:
        """Results that each step writes."""
        carried = {carry.result for carry in self.carries}
        return [n for n in range(len(self.loop.results)) if n not in carried]

    def varying(self) -> set[int]:
        """Find the scalars that are not the same in all steps."""
        found, moving = set[int](), {*self.moving, *(carry.operand for carry in self.carries)}
        for number, scalar in enumerate(self.loop.instructions):
            if scalar.data in moving if scalar.op == "load" else not found.isdisjoint(scalar.args):
                found.add(number)
        return found

    def needed(self) -> list[int]:
        """List the scalars that results need, in their order, without constants."""
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
        """Positions of the operands' steps."""
        return range(self.steps + 1, self.steps + 1 + len(self.loop.operands))

    @property
    def results(self) -> range:
        """Positions of the results' steps."""
        return range(self.operands.stop, self.operands.stop + len(self.loop.results))

    @property
    def flag(self) -> int:
        """Position of the flag's address."""
        return self.results.stop

    @property
    def size(self) -> int:
        """Entries of the table."""
        return self.flag + 1


def recurrence_layout(recurrence: Recurrence) -> RecurrenceLayout:
    """Lay out a recurrence's table."""
    found = table_layout(recurrence.loop)
    return RecurrenceLayout(found, found.size)


def recurrence_table(recurrence: Recurrence, space: Space, steps: int, entries: Sequence[int]) -> HostArray:
    """Make a table without addresses. `entries` are the elements from a step to the next, of operands, then results."""
    layout = recurrence_layout(recurrence)
    tables = WATCHED.tables(1, layout.size)
    put_space(tables, layout.loop, space)
    table: HostArray = tables[0]
    table[layout.steps] = steps
    table[layout.operands.start : layout.results.stop] = entries
    return table


def recurrence_text(recurrence: Recurrence, lanes: int) -> str:
    """Write a module with `void kernel(int64 first_block, int64 past_block, const int64* table)` for the host.

    Its steps have none of FUNCTIONS. A carry begins with its operand, and ends at the place of its result, which may be
    the same.
    """
    to, layout = Assembly(recurrence.loop.dtype), recurrence_layout(recurrence)
    nothing = Schedule((), (), ())
    text = RecurrenceText(
        recurrence.loop, lanes, nothing, layout.loop, to, KernelMemory(to), recurrence=recurrence, places=layout
    )
    text.kernel()
    return to.module


@dataclass(eq=False, slots=True, kw_only=True)
class RecurrenceText(KernelText):
    """A kernel that is being written. With 0 lanes, elements are computed as scalars."""

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
        with self.to.loop(loop_names("c", "columns.head", "columns.body", "columns.rest"), 0, "%whole", self.lanes):
            self._elements("c", "%c")
        if self.lanes > 1:
            with self.to.when("%tail.any", "rest.begin", "rest.past"):
                self._elements("tail", "%whole", self._mask())

    def _elements(self, name: str, at: str, mask: str = "") -> None:
        """Write all steps of one vector. Names of its loop begin with `name`."""
        varying, needed, found = self.recurrence.varying(), self.recurrence.needed(), dict[int, str]()
        self._compute([i for i in needed if i not in varying], found, at, mask)
        carries = [self._begun(k, f"%{name}.carry{k}", at, mask) for k in range(len(self.recurrence.carries))]
        if self.recurrence.out_of_range is not None:
            carries.append(CarriedValue(f"%{name}.far", self.to.name("bool", self.lanes), "zeroinitializer"))
        steps = loop_names(f"{name}.t", f"{name}.head", f"{name}.step", f"{name}.past")
        with self.to.loop(steps, 0, "%steps", 1, carries) as given:
            # the carries under the numbers of the scalars that load them
            names = {carry.operand: c.name for carry, c in zip(self.recurrence.carries, carries, strict=False)}
            scalars = enumerate(self.loop.instructions)
            found |= {n: names[scalar.data] for n, scalar in scalars if scalar.op == "load" and scalar.data in names}
            self._compute([i for i in needed if i in varying], found, at, mask, steps.counter)
            given.extend(self._stepped(found, at, mask, steps.counter, f"%{name}.far"))
        for (_, result), carry in zip(self.recurrence.carries, carries, strict=False):
            type = self._type(self.loop.results[result].value)
            self._store(carry.name, type, self._at(f"%result{result}.row", type, at), self.lanes, mask)
        if self.recurrence.out_of_range is not None:
            self._tell(f"%{name}.far", name, mask)

    def _begun(self, k: int, name: str, at: str, mask: str) -> CarriedValue:
        operand = self.recurrence.carries[k].operand
        type = self.loop.operands[operand].type
        first = self._load(type, self._at(f"%operand{operand}.row", type, at), self.lanes, mask)
        return CarriedValue(name, self.to.name(type, self.lanes), first)

    def _compute(self, numbers: Sequence[int], found: dict[int, str], at: str, mask: str, step: str = "") -> None:
        """Write scalars of the row, and vectors, which are added to `found`; those of a `step` from its entries."""
        for number in numbers:
            scalar = self.loop.instructions[number]
            if number in found:
                continue
            if scalar.level == Level.ELEMENT:
                found[number] = self._vector_of(number, found, at, mask, step)
            elif scalar.op == "load":
                place = self._entry(f"operand{scalar.data}", f"%operand{scalar.data}.row", scalar.type, step)
                self.row[number] = self._load(scalar.type, place)
            else:
                self.row[number] = instruction(self.to, self.loop, number, [self._scalar(a) for a in scalar.args])

    def _vector_of(self, number: int, found: dict[int, str], at: str, mask: str, step: str) -> str:
        scalar = self.loop.instructions[number]
        if scalar.op != "load":
            return instruction(self.to, self.loop, number, [self._vector(a, found) for a in scalar.args], self.lanes)
        place = self._at(f"%operand{scalar.data}.row", scalar.type, at)
        return self._load(scalar.type, self._entry(f"operand{scalar.data}", place, scalar.type, step), self.lanes, mask)

    def _stepped(self, found: dict[int, str], at: str, mask: str, step: str, far: str) -> list[str]:
        """Store the results of a step; return the carries after it, and whether any element was out of range."""
        for n in self.recurrence.stored:
            value = self.loop.results[n].value
            type = self._type(value)
            place = self._entry(f"result{n}", self._at(f"%result{n}.row", type, at), type, step)
            self._store(self._vector(value, found), type, place, self.lanes, mask)
        after = [self._vector(self.loop.results[carry.result].value, found) for carry in self.recurrence.carries]
        if self.recurrence.out_of_range is not None:
            condition = self._vector(self.recurrence.out_of_range, found)
            after.append(self.to.value(f"or {self.to.name('bool', self.lanes)} {far}, {condition}"))
        return after

    def _entry(self, array: str, place: str, type: Scalars, step: str) -> str:
        """Write a place in the entry of a step; an array with one entry for all has the same place."""
        moving = {f"operand{n}" for n in self.recurrence.moving} | {f"result{n}" for n in self.recurrence.stored}
        if not step or array not in moving:
            return place
        return self.memory.entry(place, self.to.stored(type), self.to.value(f"mul i64 {step}, %{array}.entry"))

    def _tell(self, far: str, name: str, mask: str) -> None:
        """Set the flag where any element was out of range."""
        bools = self.to.name("bool", self.lanes)
        any_of_it = self.to.value(f"and {bools} {far}, {mask}") if mask else far
        if self.lanes:
            reduce = f"llvm.vector.reduce.or.v{self.lanes}i1"
            self.to.declare("i1", reduce, bools)
            any_of_it = self.to.value(f"call i1 @{reduce}({bools} {any_of_it})")
        with self.to.when(any_of_it, f"{name}.tell", f"{name}.told"):
            self.memory.store("i8", "1", "%flag")


class CRecurrence(CKernel):
    """A recurrence as C, line by line: for one element, all steps of it."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__(recurrence.loop, Schedule((), (), ()))
        self.recurrence = recurrence
        self.places = recurrence_layout(recurrence)
        self._moved = {f"operand{n}": self.places.operands[n] for n in recurrence.moving}
        self._moved |= {f"result{n}": self.places.results[n] for n in recurrence.stored}

    def steps(self) -> Iterator[str]:
        """Print the number of steps, and by how much one moves each array."""
        yield f"const long long steps = table[{self.places.steps}];"
        for name, position in self._moved.items():
            yield f"const long long entry_{name} = table[{position}];"
        if self.recurrence.out_of_range is not None:
            yield f"unsigned char* const flag = (unsigned char*)table[{self.places.flag}];"

    def element(self, at: str) -> Iterator[str]:
        """Print all steps of the element in column `at`."""
        varying, needed = self.recurrence.varying(), self.recurrence.needed()
        yield from self._each([i for i in needed if i not in varying], at)
        for k, (operand, _) in enumerate(self.recurrence.carries):
            yield f"{NAMES[self.loop.operands[operand].type]} carry{k} = operand{operand}[{at}];"
        if self.recurrence.out_of_range is not None:
            yield "int far = 0;"
        yield "for (long long t = 0; t < steps; t++) {"
        yield from self._each([i for i in needed if i in varying], at)
        yield from self._stepped(at)
        yield "}"
        for k, (_, result) in enumerate(self.recurrence.carries):
            yield f"result{result}[{at}] = carry{k};"
        if self.recurrence.out_of_range is not None:
            yield "if (far) *flag = 1;"

    def _each(self, numbers: Iterable[int], at: str) -> Iterator[str]:
        carries = {carry.operand: k for k, carry in enumerate(self.recurrence.carries)}
        for number in numbers:
            scalar = self.loop.instructions[number]
            if scalar.op == "load" and scalar.data in carries:
                yield f"const {NAMES[scalar.type]} v{number} = carry{carries[scalar.data]};"
            else:
                column = at if scalar.level == Level.ELEMENT else "0"
                yield self._defined(number, self._entry(f"operand{scalar.data}", column))

    def _entry(self, name: str, column: str) -> str:
        return f"{column} + t * entry_{name}" if name in self._moved else column

    def _stepped(self, at: str) -> Iterator[str]:
        """Print the results of a step, and then the carries after it: they may be exchanged."""
        for n in self.recurrence.stored:
            yield f"result{n}[{self._entry(f'result{n}', at)}] = {self.name(self.loop.results[n].value)};"
        for k, (_, result) in enumerate(self.recurrence.carries):
            value = self.loop.results[result].value
            yield f"const {NAMES[self.type(value)]} next{k} = {self.name(value)};"
        for k in range(len(self.recurrence.carries)):
            yield f"carry{k} = next{k};"
        if self.recurrence.out_of_range is not None:
            yield f"far |= {self.name(self.recurrence.out_of_range)};"
