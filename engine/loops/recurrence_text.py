"""A recurrence as LLVM IR: the rows and vectors of a kernel of its step, and inside of each vector all steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.loops.assembly import Assembly, CarriedValue
from engine.loops.llvm_instructions import instruction
from engine.loops.llvm_text import KernelText, loop_names
from engine.loops.memory import KernelMemory
from engine.loops.program import Level, Scalars
from engine.loops.recurrence import Recurrence, RecurrenceLayout, recurrence_layout
from engine.loops.schedule import Schedule


def recurrence_text(recurrence: Recurrence, lanes: int) -> str:
    """The module with `void kernel(int64 first_block, int64 past_block, const int64* table)`, for the host's target.

    Its steps have none of FUNCTIONS. It begins with what lies where a carry's operand is, and leaves what came last at
    the result's place, which may be the same.
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
    """The kernel while it is written. Without lanes, 0, what is computed of an element are scalars."""

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
        """All steps of one vector. Names of its loop begin with `name`."""
        varying, needed, found = self.recurrence.varying(), self.recurrence.needed(), dict[int, str]()
        self._compute([i for i in needed if i not in varying], found, at, mask)
        carries = [self._begun(k, f"%{name}.carry{k}", at, mask) for k in range(len(self.recurrence.carries))]
        if self.recurrence.out_of_range is not None:
            carries.append(CarriedValue(f"%{name}.far", self.to.name("bool", self.lanes), "zeroinitializer"))
        steps = loop_names(f"{name}.t", f"{name}.head", f"{name}.step", f"{name}.past")
        with self.to.loop(steps, 0, "%steps", 1, carries) as given:
            self._begin_step(found, carries)
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

    def _begin_step(self, found: dict[int, str], carries: Sequence[CarriedValue]) -> None:
        """The carries under the numbers of the scalars that load them."""
        names = {operand: carry.name for (operand, _), carry in zip(self.recurrence.carries, carries, strict=False)}
        for number, scalar in enumerate(self.loop.instructions):
            if scalar.op == "load" and scalar.data in names:
                found[number] = names[scalar.data]

    def _compute(self, numbers: Sequence[int], found: dict[int, str], at: str, mask: str, step: str = "") -> None:
        """Scalars of the row, and vectors, which are `found` then; those of a `step` from its entries."""
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
        """What is stored of a step is written; what the carries are then, and whether any was out of range."""
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
        """A place in the entry of a step; of what has one for all, the same."""
        if not step or f"%{array}.entry" not in self._entries:
            return place
        return self.memory.entry(place, self.to.stored(type), self.to.value(f"mul i64 {step}, %{array}.entry"))

    @property
    def _entries(self) -> set[str]:
        """Names of how far arrays are moved by a step."""
        moving = [f"%operand{n}.entry" for n in self.recurrence.moving]
        return {*moving, *[f"%result{n}.entry" for n in self.recurrence.stored]}

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
