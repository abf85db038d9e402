"""The calls for one block: each scalar of a loop by its ufunc, from array to array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.array_functions import ARRAY_FUNCTIONS
from engine.loops.program import Instruction, Level, Loop
from engine.loops.registers import Home, Registers
from engine.loops.row_blocks import RowBlock
from engine.loops.ufuncs import BY_NAME, FOLDS, select_bits, ufunc_of


class Frame(NamedTuple):
    """A loop with all that its calls are bound to, beside the registers.

    Arrays have all axes of the space, the columns last, of extent 1 where there is one value a row. Results that are
    sums are the parts of the blocks, one after another.
    """

    loop: Loop
    #: the dtype of the numbers
    number: np.dtype[Any]
    plan: Registers
    operands: Sequence[HostArray]
    results: Sequence[HostArray]
    blocks: Sequence[RowBlock]


class Fixed(NamedTuple):
    """Values that depend on no operand, by number: as 0-d arrays; and some of them written out, for a whole block."""

    scalars: Mapping[int, HostArray]
    spread: Mapping[int, HostArray]


class BlockCalls:
    """Maker of the calls for one block of a frame after another. Calls on registers alone are made once a shape."""

    def __init__(self, frame: Frame, memory: Sequence[HostArray], fixed: Fixed) -> None:
        self.frame, self.memory, self.fixed = frame, memory, fixed
        self._registers: dict[tuple[int, tuple[int, ...]], HostArray] = {}
        self._known: dict[tuple[int, tuple[int, ...]], list[KernelCall]] = {}

    def of(self, part: int, block: RowBlock) -> list[KernelCall]:
        """The calls for a block, whose sums are the part of this number."""
        calls: list[KernelCall] = []
        arrays: dict[int, HostArray] = {}
        for number, home in self.frame.plan.homes.items():
            arrays[number] = self._array(number, home, block)
            if home.kind in ("register", "result"):
                calls += self._computing(number, block, arrays)
            calls += self._storing(number, home, arrays[number], part, block)
        return calls

    def _array(self, number: int, home: Home, block: RowBlock) -> HostArray:
        """Where a scalar's values for the block are."""
        if home.kind == "constant":
            return self.fixed.scalars[number]
        if home.kind == "register":
            return self._register(home.number, block)
        held = self.frame.operands if home.kind == "operand" else self.frame.results
        return part_in(held[home.number], block)

    def _register(self, number: int, block: RowBlock) -> HostArray:
        is_element = self.frame.plan.registers[number].level == Level.ELEMENT
        shape = block.shape if is_element else (*block.shape[:-1], 1)
        if (number, shape) not in self._registers:
            self._registers[number, shape] = self.memory[number][: math.prod(shape)].reshape(shape)
        return self._registers[number, shape]

    def _computing(self, number: int, block: RowBlock, arrays: Mapping[int, HostArray]) -> list[KernelCall]:
        instruction = self.frame.loop.instructions[number]
        if instruction.op == "load":
            return [(np.copyto, (arrays[number], part_in(self.frame.operands[instruction.data], block), "unsafe"))]
        concerned = {self.frame.plan.homes[n].kind for n in (number, *instruction.args)}
        if concerned & {"operand", "result"}:
            return calls_of(instruction, arrays[number], self._read(instruction, block, arrays))
        if (number, block.shape) not in self._known:
            made = calls_of(instruction, arrays[number], self._read(instruction, block, arrays))
            self._known[number, block.shape] = made
        return self._known[number, block.shape]

    def _read(self, instruction: Instruction, block: RowBlock, arrays: Mapping[int, HostArray]) -> list[HostArray]:
        """What an instruction reads, of the block's shape where it has to be."""
        if instruction.op in FOLDS:
            return [np.broadcast_to(arrays[instruction.args[0]], block.shape)]
        wide = set(spread_arguments(instruction)) & self.fixed.spread.keys()
        return [
            self.fixed.spread[n][: block.size].reshape(block.shape) if n in wide else arrays[n]
            for n in instruction.args
        ]

    def _storing(self, number: int, home: Home, array: HostArray, part: int, block: RowBlock) -> Iterator[KernelCall]:
        """What the results take of a scalar that is not computed in their place."""
        for j, result in enumerate(self.frame.loop.results):
            if result.value != number or home == ("result", j):
                continue
            held = self.frame.results[j]
            if not result.adds_up:
                yield np.copyto, (part_in(held, block), array, "unsafe")
            elif result.kind == "columns":
                rows = np.broadcast_to(array, block.shape)
                yield np.add.reduce, (rows, tuple(range(rows.ndim - 1)), None, held[part, : block.shape[-1]])
            else:
                yield np.add.reduce, (np.broadcast_to(array, (*block.shape[:-1], 1)), None, None, held[part, ...])


def part_in(array: HostArray, block: RowBlock) -> HostArray:
    """The block's part of an array along all axes; where the array has no columns, what its rows have."""
    found: HostArray = array[block.place if array.shape[-1] != 1 else block.rows]
    return found


def spread_arguments(instruction: Instruction) -> tuple[int, ...]:
    """Those of which NumPy would rather have an array as large as the result than a single number: 4 times faster."""
    if instruction.level != Level.ELEMENT:
        return ()
    return instruction.args if instruction.op in BY_NAME else ()


def calls_of(instruction: Instruction, out: HostArray, read: Sequence[HostArray]) -> list[KernelCall]:
    """The calls that compute an instruction. Raises TypeError for what only compiled kernels have."""
    op = instruction.op
    if op in ARRAY_FUNCTIONS:
        return [(ARRAY_FUNCTIONS[op].fill, (np, *read, out))]
    if op in FOLDS:
        return [(getattr(np, FOLDS[op]).reduce, (*read, -1, None, out, True))]
    if op in ("select", "choose"):
        return _chosen(out, *read)
    ufunc = ufunc_of(np, op)
    return [(partial(ufunc, out=out), tuple(read)) if op in BY_NAME else (ufunc, (*read, out))]


def _chosen(out: HostArray, *read: HostArray) -> list[KernelCall]:
    calls: list[KernelCall] = []
    into = out.view(np.dtype(f"i{out.itemsize}"))

    def bound(ufunc: np.ufunc, *args: HostArray) -> HostArray:
        calls.append((ufunc, (*args, into)))
        return into

    select_bits(bound, *read)
    return calls
