"""The NumPy printer: a fused kernel as calls of ufuncs on blocks that stay in a core's own cache.

The arrays between them are reused, and every call is bound to its arrays beforehand: making it is all that is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine.codegen.kernels.array_functions import ARRAY_FUNCTIONS, block_workspace, fill_function
from engine.codegen.kernels.block_program import (
    FOLDS,
    UFUNCS,
    BlockProgram,
    Registers,
    assign_registers,
    dtype_of,
    is_folded,
    needed,
    spread_scalars,
    ufunc_of,
)
from engine.codegen.kernels.program import FusedKernel, KernelResult, Level, Space, part_elements
from engine.codegen.native.native_call import joined, make_calls, share
from engine.ir.op import Array, KernelCall, Namespace
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.tensor_type import DType, HostArray

# The blocks of a space depend on its sizes alone, never on threads; so do the sums of a block.

#: elements of a block where one thread works alone
ROW_BLOCK = 1 << 14
#: elements of a block where threads take turns with Python's lock, and of the least work that is shared
SHARED_ROW_BLOCK = 1 << 16
LEAST_SHARED = 1 << 19

Index = tuple[int | slice, ...]


class RowBlock(NamedTuple):
    """Place of a block along the axes of a space, its columns last, as an index; and its shape.

    Every slice says where it ends. A space whose last row is short is seen through views of whole rows, which reach
    beyond its memory: all of such a view is more than there is.
    """

    place: Index
    shape: tuple[int, ...]

    @property
    def rows(self) -> Index:
        """The index for what has one value a row, and extent 1 in place of the columns."""
        return (*self.place[:-1], slice(0, 1))

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


def blocks_of(loop: FusedKernel, space: Space) -> list[RowBlock]:
    """Divide a space into blocks: of whole rows, if the kernel has sums over them or over columns."""
    full, size, whole, last = _divided(loop, space)
    return [*row_blocks(full, size, whole), *last]


def first_block(loop: FusedKernel, space: Space) -> tuple[list[RowBlock], int]:
    """Return the first block, as large as any, if there is one; and the number of blocks, whatever the size."""
    full, size, whole, last = _divided(loop, space)
    return [*islice(row_blocks(full, size, whole), 1), *last][:1], row_block_count(full, size, whole) + len(last)


def _divided(loop: FusedKernel, space: Space) -> tuple[tuple[int, ...], int, int, list[RowBlock]]:
    """Return the arguments of `row_blocks`, and the block behind these, of a last row that is short."""
    *rows, columns = extents(loop, space)
    whole = int(not is_elementwise(loop))
    size = block_elements(math.prod(rows) * columns)
    short = space.length - (math.prod(rows) - 1) * columns
    if short == columns or not math.prod(rows):
        return (*rows, columns), size, whole, []
    (count,) = rows
    last = RowBlock((slice(count - 1, count), slice(0, short)), (1, short))
    return (count - 1, columns), size, whole, [last]


def extents(loop: FusedKernel, space: Space) -> tuple[int, ...]:
    """Return the extents of the row axes and the columns; one row, if all of the space lies in a line."""
    return (1, space.length) if is_flat(loop, space) else (*(space.rows or (1,)), space.columns)


def is_flat(loop: FusedKernel, space: Space) -> bool:
    """Whether rows do not matter: nothing is summed, elements lie densely, and values a row are one for all."""
    levels = [*(operand.level for operand in loop.operands), *([Level.ELEMENT] * len(loop.results))]
    steps = [(space.columns,) if level == Level.ELEMENT else (0,) for level in levels]
    return len(space.rows) == 1 and is_elementwise(loop) and list(space.strides) == steps


def is_elementwise(loop: FusedKernel) -> bool:
    """Whether no result, and nothing on the way to it, takes in more than one element."""
    whole = any(instruction.op.startswith("row_") for instruction in loop.instructions)
    return not whole and all(result.kind == "element" for result in loop.results)


def block_elements(size: int) -> int:
    """Return the elements that a block of a space of `size` should have."""
    return ROW_BLOCK if size < LEAST_SHARED else SHARED_ROW_BLOCK


def row_blocks(dims: Sequence[int], size: int, whole: int = 0) -> Iterator[RowBlock]:
    """Yield blocks of about `size` elements at most, the last `whole` axes undivided, all about as large, in order."""
    if not math.prod(dims):
        return
    axis, step = _cut(dims, size, whole)
    inner = tuple(dims[axis:])
    whole_axes = tuple(slice(0, extent) for extent in inner)
    if not axis:
        yield RowBlock(whole_axes, inner)
        return
    extent = dims[axis - 1]
    for outer in _indices(dims[: axis - 1]):
        for start in range(0, extent, step):
            stop = min(start + step, extent)
            yield RowBlock((*outer, slice(start, stop), *whole_axes), (stop - start, *inner))


def row_block_count(dims: Sequence[int], size: int, whole: int = 0) -> int:
    """Count the `row_blocks`."""
    if not math.prod(dims):
        return 0
    axis, step = _cut(dims, size, whole)
    return math.prod(dims[: axis - 1]) * -(-dims[axis - 1] // step) if axis else 1


def _cut(dims: Sequence[int], size: int, whole: int) -> tuple[int, int]:
    """Count the axes that are divided, and the extent of the last of them that a block takes; 0: none is divided."""
    axis = len(dims) - whole
    while axis and math.prod(dims[axis - 1 :]) <= size:
        axis -= 1
    if not axis:
        return 0, 0
    extent, most = dims[axis - 1], max(1, size // math.prod(dims[axis:]))
    return axis, -(-extent // -(-extent // most))


def _indices(dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not dims:
        yield ()
        return
    for first in range(dims[0]):
        yield from ((first, *rest) for rest in _indices(dims[1:]))


def bind_blocks(
    loop: FusedKernel, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray], threads: int
) -> list[KernelCall]:
    """Bind the calls that compute `results`: ufuncs themselves, if one block holds all.

    Else a call for each block, or one for all of them if there is enough work for several threads. Bits do not depend
    on `threads`. Raises TypeError for a kernel that `expand_functions` has written out for a compiler.
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
        (np.add.reduce, (parts, 0, None, as_strided(a, parts.shape[1:], [a.itemsize] * (parts.ndim - 1))))
        for a, result, parts in zip(results, loop.results, written, strict=True)
        if result.adds_up and len(divided) != 1
    ]
    program = BlockProgram(loop, np.dtype(loop.dtype), _plan(loop, space))
    return [*block_calls(program, read, written, divided, threads), *additions]


def workspace_bytes(loop: FusedKernel, space: Space, threads: int, least_parts: int = 1) -> int:
    """Count the bytes that `bind_blocks` and its calls allocate: arrays of a block's size, and parts.

    There may be more parts if machine code runs the kernel: `least_parts`.
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
    """Bind the calls for all blocks, those of each thread in memory of its own.

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
    """Yield the call for each block, bound when it is asked for: those of a long formula on many blocks take megabytes.

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
        """Return the arrays for a block of this shape, the same ones each time."""
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
    """Bind the calls for the block of this number."""
    written = [
        _part_in(x, block) if not result.adds_up else x[number, : block.shape[-1]] if x.ndim == 2 else x[number, ...]
        for x, result in zip(results, program.loop.results, strict=True)
    ]
    return program.calls([*(_part_in(x, block) for x in operands), *written, *memory.of(block.shape)], block.shape)


def _part_in(array: HostArray, block: RowBlock) -> HostArray:
    """Return the block's part of an array along all axes; if the array has no columns, that of its rows."""
    part: HostArray = array[block.place if array.shape[-1] != 1 else block.rows]
    return part


def _make_parts(parts: Sequence[Sequence[KernelCall]], first: int, past: int, _: int) -> None:
    """Make the calls of these parts, each of which works in memory of its own."""
    for part in parts[first:past]:
        make_calls(part)


def block_bytes(
    loop: FusedKernel, number: np.dtype[Any], plan: Registers, divided: Sequence[RowBlock], shares: int
) -> int:
    """Count the bytes that `block_calls` and its calls allocate for the largest of its blocks, in so many shares."""
    size = _largest(divided, Level.ELEMENT)
    memory = sum(_largest(divided, r.level) * dtype_of(r, number).itemsize for r in plan.registers)
    functions = {loop.instructions[n].op for n in plan.homes} & ARRAY_FUNCTIONS.keys()
    blocks = max((block_workspace(size, ARRAY_FUNCTIONS[op].arrays) for op in functions), default=0)
    spread = sum(dtype_of(loop.instructions[n], number).itemsize for n in spread_scalars(loop, plan)) * size
    return shares * (memory + blocks) + spread


def _plan(loop: FusedKernel, space: Space) -> Registers:
    """Assign registers; results that lie as ufuncs like it are computed in their place."""
    dims = extents(loop, space)
    direct = {
        j
        for j, (result, steps) in enumerate(zip(loop.results, _strides(loop, space)[len(loop.operands) :], strict=True))
        if not result.adds_up and is_direct(loop, result, _is_dense(dims[:-1], steps, dims[-1]))
    }
    return assign_registers(loop, direct=frozenset(direct))


def is_direct(loop: FusedKernel, result: KernelResult, dense: bool) -> bool:
    """Whether a scalar can be computed in its result's place, which must be dense unless a single ufunc computes it."""
    instruction = loop.instructions[result.value]
    as_wide = (instruction.level == Level.ELEMENT) == (result.kind == "element")
    return as_wide and not is_folded(loop, result.value) and (dense or instruction.op in {*UFUNCS, *FOLDS})


def _is_dense(rows: Sequence[int], steps: Sequence[int], columns: int) -> bool:
    dense = [columns * math.prod(rows[i + 1 :]) for i in range(len(rows))]
    return all(extent == 1 or here == there for extent, here, there in zip(rows, steps, dense, strict=True))


def _strides(loop: FusedKernel, space: Space) -> list[tuple[int, ...]]:
    """Return the steps along the row axes of `extents`."""
    if is_flat(loop, space):
        return [(0,)] * len(space.strides)
    return [steps if space.rows else (0,) for steps in space.strides]


def _along(array: HostArray, dims: Sequence[int], has_columns: bool, steps: Sequence[int]) -> HostArray:
    """View an operand or a result along all axes."""
    shape = (*dims[:-1], dims[-1] if has_columns else 1)
    return as_strided(array, shape, [step * array.itemsize for step in (*steps, 1)])


def _parts(array: HostArray, result: KernelResult, columns: int, blocks: int) -> HostArray:
    """Return the array of the blocks' sums: the result itself, if there is one block."""
    shape = (blocks, columns) if result.kind == "columns" else (blocks,)
    if blocks == 1:
        return as_strided(array, shape, [array.itemsize] * len(shape))
    return np.zeros(shape, array.dtype)


def _shares(divided: Sequence[RowBlock], threads: int) -> list[range]:
    """Share the blocks among threads, by number; one thread, if there is not enough work for two."""
    if sum(block.size for block in divided) < LEAST_SHARED:
        threads = 1
    count = max(1, min(threads, len(divided)))
    ends = [len(divided) * i // count for i in range(count + 1)]
    return [range(start, stop) for start, stop in pairwise(ends)]


def _largest(divided: Sequence[RowBlock], level: Level) -> int:
    """Elements of a register that is large enough for every block."""
    return max((math.prod(t.shape if level == Level.ELEMENT else t.shape[:-1]) for t in divided), default=0)


# A fused kernel on whole arrays of any array module: what a card runs if no kernel of it is compiled.
#
# Each scalar is an array, freed when nothing reads it any more.

#: ufunc that reduces → the function of whole arrays
_REDUCE = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
#: elements of a result whose calls are worth binding: beyond, arrays of its size would be kept to save little time
MOST_BOUND = 1 << 12


class WholeArrayKernel:
    """A kernel made ready for whole arrays, its numbers of any dtype: what is read and written is cast.

    Its results are of the kinds element and row. Raises TypeError for others, and for what only compiled kernels have.
    """

    def __init__(self, loop: FusedKernel, number: DType) -> None:
        if any(result.adds_up for result in loop.results):
            raise TypeError("sums over rows are for kernels")
        order, scalars = needed(loop), loop.instructions
        dtypes = {n: dtype_of(scalars[n], number) for n in order}
        self.loop, self.stored = loop, [result.value for result in loop.results]
        self.places = {value: (j, dtypes[value]) for j, value in reversed([*enumerate(self.stored)])}
        self.constants = {n: dtypes[n].type(scalars[n].data) for n in order if scalars[n].op == "constant"}
        self.loads = [(n, scalars[n].data, dtypes[n]) for n in order if scalars[n].op == "load"]
        self.computed = [n for n in order if scalars[n].op not in ("constant", "load")]
        last = {a: n for n in order for a in scalars[n].args if a not in self.stored}
        self.ended = {n: [a for a, end in last.items() if end == n] for n in self.computed}

    def fill(self, run: RunContext, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Fill `results` by broadcasting; rows have extent 1 in place of the columns."""
        values: dict[int, Array] = self.constants.copy()
        for n, operand, dtype in self.loads:
            x = operands[operand]
            values[n] = x if x.dtype == dtype else x.astype(dtype)
        for n in run.through(self.computed):
            place = self.places.get(n)
            out = results[place[0]] if place is not None and results[place[0]].dtype == place[1] else None
            values[n] = self.compute(run, n, [values[a] for a in self.loop.instructions[n].args], out)
            for a in self.ended[n]:
                del values[a]
        for value, result in zip(self.stored, results, strict=True):
            if values[value] is not result:
                run.xp.copyto(result, values[value], casting="unsafe")

    def compute(self, run: RunContext, n: int, read: Sequence[Array], out: Array | None) -> Array:
        """Compute the scalar of this number: in `out`, if a single ufunc writes it, else in a new array."""
        xp, op = run.xp, self.loop.instructions[n].op
        if op in FOLDS:
            return getattr(xp, _REDUCE[FOLDS[op]])(*read, axis=-1, keepdims=True)
        if op in ("select", "choose"):
            return xp.where(*read)
        if op not in ARRAY_FUNCTIONS:
            return ufunc_of(xp, op)(*read, out=out)
        (x,) = read
        made = xp.empty(x.shape, x.dtype)
        fill_function(run, op, x, made)
        return made


class _Rows(NamedTuple):
    """Rows of one length: the first one's number, their extents, and their columns."""

    first: int
    extents: tuple[int, ...]
    columns: int


def run_on_arrays(
    run: RunContext, loop: FusedKernel, space: Space, operands: Sequence[Array], results: Sequence[Array]
) -> None:
    """Fill `results`, of all kinds. Arrays begin at row 0, column 0 of the space, and lie as its strides say.

    Raises TypeError for what only compiled kernels have.
    """
    sums = [(array, result) for array, result in zip(results, loop.results, strict=True) if result.adds_up]
    for array, _ in sums:
        array.fill(0)
    stored = tuple(
        KernelResult("element" if r.kind in ("element", "columns") else "row", r.value) for r in loop.results
    )
    whole = WholeArrayKernel(loop._replace(results=stored), np.dtype(loop.dtype))
    levels = [operand.level for operand in loop.operands]
    for rows in _chunks(space):
        read = [
            _over(run.xp, array, rows, level, steps)
            for array, level, steps in zip(operands, levels, space.strides[: len(operands)], strict=True)
        ]
        written = [
            run.xp.empty((*rows.extents, rows.columns if result.kind == "columns" else 1), array.dtype)
            if result.adds_up
            else _over(run.xp, array, rows, Level.ELEMENT if result.kind == "element" else Level.ROW, steps)
            for array, result, steps in zip(results, loop.results, space.strides[len(operands) :], strict=True)
        ]
        whole.fill(run, read, written)
        for array, result, part in zip(results, loop.results, written, strict=True):
            if result.adds_up:
                added = part.reshape(-1, part.shape[-1]).sum(axis=0)
                sums_so_far = array.reshape(-1)[: added.size]
                sums_so_far += added


def _chunks(space: Space) -> Iterator[_Rows]:
    """Yield all rows, or the whole ones and then the one that is cut short."""
    count = math.prod(space.rows)
    left = space.length - (count - 1) * space.columns
    if not count or left == space.columns:
        yield _Rows(0, space.rows, space.columns)
        return
    if count > 1:
        yield _Rows(0, (count - 1,), space.columns)
    yield _Rows(count - 1, (1,), left)


def _over(xp: Namespace, array: Array, rows: _Rows, level: Level, steps: Sequence[int]) -> Array:
    """View these rows of an array."""
    width, size = rows.columns if level == Level.ELEMENT else 1, array.itemsize
    if rows.first:
        array = array.reshape(-1)[rows.first * steps[0] :]
    return xp.lib.stride_tricks.as_strided(array, (*rows.extents, width), [size * step for step in (*steps, 1)])


class ElementKernel:
    """A formula for one element, in the dtype `number`, as a kernel: on NumPy block by block, on CuPy on whole arrays.

    Operands, of `dtypes`, broadcast to the result, and are cast as the kernel reads them; the result is cast to its
    `dtype` when it is stored.
    """

    def __init__(self, loop: FusedKernel, number: DType, dtypes: Sequence[DType], dtype: DType) -> None:
        self.loop, self.number = loop, number
        self.gives = dtype_of(loop.instructions[loop.results[0].value], number)
        wanted = [dtype_of(operand, number) for operand in loop.operands]
        copied = frozenset(i for i, (here, read) in enumerate(zip(dtypes, wanted, strict=True)) if here != read)
        direct = dtype == self.gives and is_direct(loop, loop.results[0], dense=True)
        self._plan = assign_registers(loop, copied, frozenset({0} if direct else ()))

    @DeviceMethod
    def fill(self, run: RunContext, operands: Sequence[Array], out: Array) -> None:
        """Compute; on NumPy in memory that does not grow with `out`, which is dense."""
        self._whole.fill(run, operands, [out])

    @fill.on("cpu")
    def _fill_in_blocks(self, run: RunContext, operands: Sequence[HostArray], out: HostArray) -> None:
        program = self._program
        if out.size <= SHARED_ROW_BLOCK or program.is_one_ufunc:
            make_calls(self._at_once(operands, out, program.spread))
            return
        alike = all(not x.ndim or (x.shape == out.shape and x.flags.c_contiguous) for x in operands)
        shape = (out.size,) if alike else out.shape
        read = [x.reshape(shape) if alike and x.ndim else np.broadcast_to(x, shape) for x in operands]
        blocks = list(row_blocks(shape, block_elements(out.size)))
        make_calls(run.through(calls_by_block(program, read, [out.reshape(shape)], blocks)))

    @DeviceMethod
    def bind(self, run: RunContext, operands: Sequence[Array], out: Array) -> KernelCall:
        """Bind the call of `fill`; for a small result on NumPy, the ufuncs themselves."""
        return self._whole.fill, (run, operands, [out])

    @bind.on("cpu")
    def _bind_blocks(self, run: RunContext, operands: Sequence[HostArray], out: HostArray) -> KernelCall:
        if out.size > MOST_BOUND:
            return self._fill_in_blocks, (run, operands, out)
        return joined(self._at_once(operands, out, [np.full(out.shape, x) for x in self._program.spread]))

    def _at_once(
        self, operands: Sequence[HostArray], out: HostArray, spread: Sequence[HostArray]
    ) -> Sequence[KernelCall]:
        """Bind the calls for one block with all elements."""
        program = self._program
        return program.calls([*operands, out, *program.memory(out.shape), *spread], out.shape)

    def workspace(self, size: int) -> int:
        """Bytes that `fill` allocates on NumPy for a result of `size` elements."""
        if self._program.is_one_ufunc:
            return 0
        divided = list(islice(row_blocks((size,), block_elements(size)), 1))
        return block_bytes(self.loop, self.number, self._plan, divided, 1)

    @cached_property
    def _program(self) -> BlockProgram:
        return BlockProgram(self.loop, self.number, self._plan)

    @cached_property
    def _whole(self) -> WholeArrayKernel:
        return WholeArrayKernel(self.loop, self.number)
