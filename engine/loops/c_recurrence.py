"""Parts of every text of C for a recurrence: what a kernel goes through for one element, all steps of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.loops.c_expressions import NAMES
from engine.loops.c_loop import CLoop
from engine.loops.program import Level
from engine.loops.recurrence import Recurrence, recurrence_layout
from engine.loops.schedule import Schedule


class CRecurrence(CLoop):
    """The recurrence, and its parts line by line."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__(recurrence.loop, Schedule((), (), ()))
        self.recurrence = recurrence
        self.places = recurrence_layout(recurrence)
        self._moved = {f"operand{n}": self.places.operands[n] for n in recurrence.moving}
        self._moved |= {f"result{n}": self.places.results[n] for n in recurrence.stored}

    def steps(self) -> Iterator[str]:
        """How many there are, and how far arrays are moved by one."""
        yield f"const long long steps = table[{self.places.steps}];"
        for name, position in self._moved.items():
            yield f"const long long entry_{name} = table[{position}];"
        if self.recurrence.out_of_range is not None:
            yield f"unsigned char* const flag = (unsigned char*)table[{self.places.flag}];"

    def element(self, at: str) -> Iterator[str]:
        """All steps of the element in column `at`."""
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
        """What is stored of a step, and the carries behind it: they may be exchanged."""
        for n in self.recurrence.stored:
            yield f"result{n}[{self._entry(f'result{n}', at)}] = {self.name(self.loop.results[n].value)};"
        for k, (_, result) in enumerate(self.recurrence.carries):
            value = self.loop.results[result].value
            yield f"const {NAMES[self.type(value)]} next{k} = {self.name(value)};"
        for k in range(len(self.recurrence.carries)):
            yield f"carry{k} = next{k};"
        if self.recurrence.out_of_range is not None:
            yield f"far |= {self.name(self.recurrence.out_of_range)};"
