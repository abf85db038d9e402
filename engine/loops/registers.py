"""Registers of a kernel: where NumPy keeps its scalars while it computes a block, and which of them share an array."""

from __future__ import annotations

from typing import Literal, NamedTuple

from engine.loops.program import Instruction, Level, Loop, Scalars


class Home(NamedTuple):
    """Place of a scalar: an operand or a result by its number, an array of the block's size, or one that is fixed."""

    kind: Literal["constant", "operand", "result", "register"]
    number: int


class Register(NamedTuple):
    """An array as large as a block, or (at ROW) as its rows are many."""

    level: Level
    type: Scalars


class Registers(NamedTuple):
    """Homes of the scalars that a result depends on, in their order, and the registers that there are."""

    homes: dict[int, Home]
    registers: tuple[Register, ...]


def assign_registers(
    loop: Loop, copied: frozenset[int] = frozenset(), direct: frozenset[int] = frozenset()
) -> Registers:
    """Registers by liveness. Operands in `copied` are copied into one first; results in `direct` hold their scalar.

    A scalar may take over the register of one that is used for the last time to compute it, where the two are of one
    kind; a choice, which takes several calls, has one of its own.
    """
    return _Assignment(loop, copied, direct).made()


def needed(loop: Loop) -> list[int]:
    """The numbers of the scalars that some result depends on, in order."""
    used = {result.value for result in loop.results}
    for number in range(len(loop.instructions) - 1, -1, -1):
        if number in used:
            used.update(loop.instructions[number].args)
    return sorted(used)


def is_folded(loop: Loop, number: int) -> bool:
    """Whether a scalar depends on no operand."""
    instruction = loop.instructions[number]
    return instruction.op == "constant" or (
        instruction.op != "load"
        and instruction.level == Level.CONSTANT
        and all(is_folded(loop, a) for a in instruction.args)
    )


class _Assignment:
    def __init__(self, loop: Loop, copied: frozenset[int], direct: frozenset[int]) -> None:
        self.loop, self.copied = loop, copied
        self.held = {loop.results[j].value: j for j in sorted(direct, reverse=True)}
        self.order = needed(loop)
        self.last = {a: number for number in self.order for a in loop.instructions[number].args}
        self.homes: dict[int, Home] = {}
        self.registers: list[Register] = []
        self.free: dict[Register, list[int]] = {}

    def made(self) -> Registers:
        for number in self.order:
            self.homes[number] = self._fixed(number) or self._computed(number)
            self._release(number)
        return Registers(self.homes, tuple(self.registers))

    def _fixed(self, number: int) -> Home | None:
        instruction = self.loop.instructions[number]
        if is_folded(self.loop, number):
            return Home("constant", number)
        if instruction.op == "load" and instruction.data not in self.copied:
            return Home("operand", instruction.data)
        return Home("result", self.held[number]) if number in self.held else None

    def _computed(self, number: int) -> Home:
        instruction = self.loop.instructions[number]
        kind = register_of(instruction)
        for argument in instruction.args if len(instruction.args) < 3 else ():
            if self._ends(argument, number) and self.registers[self.homes[argument].number] == kind:
                return self.homes[argument]
        free = self.free.setdefault(kind, [])
        if not free:
            free.append(len(self.registers))
            self.registers.append(kind)
        return Home("register", free.pop())

    def _release(self, number: int) -> None:
        """Registers that are read here for the last time, unless the scalar has taken one of them over."""
        taken = self.homes[number]
        ending = {a for a in self.loop.instructions[number].args if self._ends(a, number)}
        ending |= set() if number in self.last else {number}
        for home in {self.homes[a] for a in ending if a == number or self.homes[a] != taken}:
            if home.kind == "register":
                self.free.setdefault(self.registers[home.number], []).append(home.number)

    def _ends(self, argument: int, number: int) -> bool:
        return self.last[argument] == number and self.homes[argument].kind == "register"


def register_of(instruction: Instruction) -> Register:
    """The kind of register that holds a scalar."""
    return Register(Level.ELEMENT if instruction.level == Level.ELEMENT else Level.ROW, instruction.type)
