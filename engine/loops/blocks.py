"""The NumPy printer: a fused kernel as calls of ufuncs on blocks that stay in a core's own cache.

The arrays between them are reused, and every call is bound to its arrays beforehand: making it is all that is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.array_functions import ARRAY_FUNCTIONS
from engine.loops.block_program import BlockProgram, dtype_of, spread_scalars
from engine.loops.program import Level, Loop, LoopResult, Space, part_elements
from engine.loops.registers import Registers, assign_registers, is_folded
from engine.loops.row_blocks import LEAST_SHARED, RowBlock, blocks_of, extents, first_block, is_flat
from engine.loops.special import block_workspace
from engine.loops.ufuncs import FOLDS, UFUNCS
from engine.native.calls import make_calls
from engine.native.sharing import share


def bind_blocks(
    loop: Loop, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray], threads: int
) -> list[KernelCall]:
    """The calls after which `results` are complete: ufuncs themselves, where one block holds all.

    Else a call for each block, or one for all of them where there is enough work for several threads. Bits do not
    depend on `threads`. Raises TypeError for a kernel that `expand` has written out for a compiler.
    """
    divided, dims = blocks_of(loop, space), extents(loop, space)
    strides = _strides(loop, space)
    read = [
        _along(a, dims, operand.level == Level.ELEMENT, steps)
        for a, operand, steps in zip(operands, loop.operands, strides[: len(operands)], strict=True)
    ]
    written = [
        _parts(a, result, dims[-1], len(divided))
        if result.adds_up
        else _along(a, dims, result.kind == "element", steps)
        for a, result, steps in zip(results, loop.results, strides[len(operands) :], strict=True)
    ]
    additions = [
        (np.add.reduce, (parts, 0, None, _whole(a, parts)))
        for a, result, parts in zip(results, loop.results, written, strict=True)
        if result.adds_up and len(divided) != 1
    ]
    program = BlockProgram(loop, np.dtype(loop.dtype), _plan(loop, space))
    return [*block_calls(program, read, written, divided, threads), *additions]


def workspace_bytes(loop: Loop, space: Space, threads: int, least_parts: int = 1) -> int:
    """What `bind_blocks` allocates and keeps, and what its calls allocate: arrays of a block's size, and parts.

    There may be more of these where machine code runs the kernel: `least_parts`.
    """
    first, count = first_block(loop, space)
    several = max(count, least_parts)
    parts = several * part_elements(loop, space) * np.dtype(loop.dtype).itemsize if several > 1 else 0
    shares = max(1, min(threads, count)) if space.length >= LEAST_SHARED else 1
    return parts + block_bytes(loop, np.dtype(loop.dtype), _plan(loop, space), first, shares)


def block_calls(
    program: BlockProgram,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    divided: Sequence[RowBlock],
    threads: int,
) -> list[KernelCall]:
    """The calls for all blocks, each thread's in memory of its own.

    Arrays have all axes of the space, the columns last, of extent 1 where there is one value a row. Results that are
    sums are the parts of the blocks, one after another.
    """
    largest = {level: _largest(divided, level) for level in (Level.ROW, Level.ELEMENT)}
    spread = [(Level.ELEMENT, np.full(largest[Level.ELEMENT], value)) for value in program.spread]
    made: list[list[list[KernelCall]]] = []
    for numbers in _shares(divided, threads):
        memory = _Memory([*((level, np.empty(largest[level], dtype)) for level, dtype in program.registers), *spread])
        made.append([_calls_of(program, operands, results, memory, n, divided[n]) for n in numbers])
    if len(made) > 1:
        parts = [[call for calls in part for call in calls] for part in made]
        return [(share, (partial(_make_parts, parts), len(parts), range(len(parts))))]
    return [(make_calls, (calls,)) for calls in made[0]] if len(divided) > 1 else made[0][0] if made[0] else []


def calls_by_block(
    program: BlockProgram, operands: Sequence[HostArray], results: Sequence[HostArray], divided: Sequence[RowBlock]
) -> Iterator[KernelCall]:
    """The call for each block, made when it is asked for: those of a long formula on many blocks take megabytes.

    As `block_calls` of one thread, for results that are no sums.
    """
    largest = {level: _largest(divided, level) for level in (Level.ROW, Level.ELEMENT)}
    registers = [(level, np.empty(largest[level], dtype)) for level, dtype in program.registers]
    spread = [(Level.ELEMENT, np.full(largest[Level.ELEMENT], value)) for value in program.spread]
    memory = _Memory([*registers, *spread])
    for number, block in enumerate(divided):
        yield make_calls, (_calls_of(program, operands, results, memory, number, block),)


class _Memory:
    """Registers of one thread, and spread numbers: as large as the largest block, seen in the shape of each."""

    def __init__(self, arrays: Sequence[tuple[Level, HostArray]]) -> None:
        self._arrays = arrays
        self._seen: dict[tuple[int, ...], list[HostArray]] = {}

    def of(self, shape: tuple[int, ...]) -> list[HostArray]:
        """The arrays for a block of this shape, the same ones each time."""
        if shape not in self._seen:
            extents = {Level.ELEMENT: shape, Level.ROW: (*shape[:-1], 1)}
            self._seen[shape] = [x[: math.prod(extents[level])].reshape(extents[level]) for level, x in self._arrays]
        return self._seen[shape]


def _calls_of(
    program: BlockProgram,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    memory: _Memory,
    number: int,
    block: RowBlock,
) -> list[KernelCall]:
    """The calls for the block of this number."""
    written = [
        _part_in(x, block) if not result.adds_up else x[number, : block.shape[-1]] if x.ndim == 2 else x[number, ...]
        for x, result in zip(results, program.loop.results, strict=True)
    ]
    return program.calls([*(_part_in(x, block) for x in operands), *written, *memory.of(block.shape)], block.shape)


def _part_in(array: HostArray, block: RowBlock) -> HostArray:
    """The block's part of an array along all axes; where the array has no columns, what its rows have."""
    found: HostArray = array[block.place if array.shape[-1] != 1 else block.rows]
    return found


def _make_parts(parts: Sequence[Sequence[KernelCall]], first: int, past: int, _: int) -> None:
    """Each of which works in memory of its own."""
    for part in parts[first:past]:
        make_calls(part)


def block_bytes(loop: Loop, number: np.dtype[Any], plan: Registers, divided: Sequence[RowBlock], shares: int) -> int:
    """What `block_calls` allocates, and what its calls do, for the largest of its blocks, in so many shares."""
    size = _largest(divided, Level.ELEMENT)
    memory = sum(_largest(divided, r.level) * dtype_of(r, number).itemsize for r in plan.registers)
    functions = {loop.instructions[n].op for n in plan.homes} & ARRAY_FUNCTIONS.keys()
    blocks = max((block_workspace(size, ARRAY_FUNCTIONS[op].arrays) for op in functions), default=0)
    spread = sum(dtype_of(loop.instructions[n], number).itemsize for n in spread_scalars(loop, plan)) * size
    return shares * (memory + blocks) + spread


def _plan(loop: Loop, space: Space) -> Registers:
    """Registers, where results that lie as ufuncs like it are written at once."""
    dims = extents(loop, space)
    direct = {
        j
        for j, (result, steps) in enumerate(zip(loop.results, _strides(loop, space)[len(loop.operands) :], strict=True))
        if not result.adds_up and is_direct(loop, result, _is_dense(dims[:-1], steps, dims[-1]))
    }
    return assign_registers(loop, direct=frozenset(direct))


def is_direct(loop: Loop, result: LoopResult, dense: bool) -> bool:
    """Whether a scalar can be computed in its result's place: what is no single ufunc wants it to lie densely."""
    instruction = loop.instructions[result.value]
    as_wide = (instruction.level == Level.ELEMENT) == (result.kind == "element")
    return as_wide and not is_folded(loop, result.value) and (dense or instruction.op in {*UFUNCS, *FOLDS})


def _is_dense(rows: Sequence[int], steps: Sequence[int], columns: int) -> bool:
    dense = [columns * math.prod(rows[i + 1 :]) for i in range(len(rows))]
    return all(extent == 1 or here == there for extent, here, there in zip(rows, steps, dense, strict=True))


def _strides(loop: Loop, space: Space) -> list[tuple[int, ...]]:
    """The steps along the row axes of `extents`."""
    if is_flat(loop, space):
        return [(0,)] * len(space.strides)
    return [steps if space.rows else (0,) for steps in space.strides]


def _along(array: HostArray, dims: Sequence[int], has_columns: bool, steps: Sequence[int]) -> HostArray:
    """What begins where `array` does, along all axes."""
    shape = (*dims[:-1], dims[-1] if has_columns else 1)
    return as_strided(array, shape, [step * array.itemsize for step in (*steps, 1)])


def _parts(array: HostArray, result: LoopResult, columns: int, blocks: int) -> HostArray:
    """Where the blocks' sums go: the result itself, where there is one block."""
    shape = (blocks, columns) if result.kind == "columns" else (blocks,)
    if blocks == 1:
        return as_strided(array, shape, [array.itemsize] * len(shape))
    return np.zeros(shape, array.dtype)


def _whole(array: HostArray, parts: HostArray) -> HostArray:
    """The result that the parts add up to."""
    return as_strided(array, parts.shape[1:], [array.itemsize] * (parts.ndim - 1))


def _shares(divided: Sequence[RowBlock], threads: int) -> list[range]:
    """The numbers of the blocks that each thread takes; one thread, where there is not enough for two."""
    if sum(block.size for block in divided) < LEAST_SHARED:
        threads = 1
    count = max(1, min(threads, len(divided)))
    ends = [len(divided) * i // count for i in range(count + 1)]
    return [range(start, stop) for start, stop in pairwise(ends)]


def _largest(divided: Sequence[RowBlock], level: Level) -> int:
    """Elements of a register that is large enough for every block."""
    return max((math.prod(t.shape if level == Level.ELEMENT else t.shape[:-1]) for t in divided), default=0)
