"""The NumPy printer: a fused kernel as ufunc calls on blocks of arrays that fit a core's own cache.

Arrays between the calls are reused, and every call is bound to its arrays in advance, so that a run only makes calls.
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
from engine.codegen.native.native_call import join_calls, make_calls, share
from engine.ir.op import Array, KernelCall, Namespace
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.tensor_type import DType, HostArray

# Blocks depend on the sizes of a space alone, never on threads. So the sums of blocks always have the same bits.

#: elements of a block if one thread runs the kernel
ROW_BLOCK = 1 << 14
#: elements of a block if threads take turns with the GIL, and of the smallest work that is shared
SHARED_ROW_BLOCK = 1 << 16
LEAST_SHARED = 1 << 19

Index = tuple[int | slice, ...]


class RowBlock(NamedTuple):
    """Index of a block along the row axes and the columns of a space, and the block's shape.

    Every slice has an explicit end. If the last row of a space is short, arrays are viewed as whole rows, and these
    views reach beyond the arrays' memory; a slice without an end would read it.
    """

    place: Index
    shape: tuple[int, ...]

    @property
    def rows(self) -> Index:
        """The index for arrays with one value a row, which have extent 1 in place of the columns."""
        return (*self.place[:-1], slice(0, 1))

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def blocks_of(fused: FusedKernel, space: Space) -> list[RowBlock]:
    """Divide a space into blocks; into blocks of whole rows, if the kernel reduces rows or sums over them."""
    full, size, whole, last = _divided(fused, space)
    return [*row_blocks(full, size, whole), *last]


def first_block(fused: FusedKernel, space: Space) -> tuple[list[RowBlock], int]:
    """Return the first block, which is as large as any (none if the space is empty), and the number of blocks."""
    full, size, whole, last = _divided(fused, space)
    return [*islice(row_blocks(full, size, whole), 1), *last][:1], row_block_count(full, size, whole) + len(last)


def _divided(fused: FusedKernel, space: Space) -> tuple[tuple[int, ...], int, int, list[RowBlock]]:
    """Return the arguments of `row_blocks`, and an extra block for a last row that is short."""
    *rows, columns = extents(fused, space)
    whole_axes = int(not is_elementwise(fused))
    size = block_elements(math.prod(rows) * columns)
    # A short last row becomes a block of its own.
    short = space.length - (math.prod(rows) - 1) * columns
    if short == columns or not math.prod(rows):
        return (*rows, columns), size, whole_axes, []
    (count,) = rows
    last = RowBlock((slice(count - 1, count), slice(0, short)), (1, short))
    return (count - 1, columns), size, whole_axes, [last]


def extents(fused: FusedKernel, space: Space) -> tuple[int, ...]:
    """Return the extents of the row axes and the columns; a single row if all of the space is contiguous."""
    return (1, space.length) if is_flat(fused, space) else (*(space.rows or (1,)), space.columns)


def is_flat(fused: FusedKernel, space: Space) -> bool:
    """Whether rows do not matter: no sums, contiguous elements, and ROW operands with one value for all rows."""
    levels = [*(operand.level for operand in fused.operands), *([Level.ELEMENT] * len(fused.results))]
    steps = [(space.columns,) if level == Level.ELEMENT else (0,) for level in levels]
    return len(space.rows) == 1 and is_elementwise(fused) and list(space.strides) == steps


def is_elementwise(fused: FusedKernel) -> bool:
    """Whether every result depends on one element only."""
    has_reductions = any(instruction.op.startswith("row_") for instruction in fused.instructions)
    return not has_reductions and all(result.kind == "element" for result in fused.results)


def block_elements(size: int) -> int:
    """Return the number of elements that blocks of a space of `size` elements should have."""
    return ROW_BLOCK if size < LEAST_SHARED else SHARED_ROW_BLOCK


def row_blocks(dims: Sequence[int], size: int, whole: int = 0) -> Iterator[RowBlock]:
    """Yield blocks of at most about `size` elements, of similar sizes, in order. The last `whole` axes are not cut."""
    if not math.prod(dims):
        return
    axis, step = _cut(dims, size, whole)
    inner = tuple(dims[axis:])
    whole_slices = tuple(slice(0, extent) for extent in inner)
    if not axis:
        yield RowBlock(whole_slices, inner)
        return
    extent = dims[axis - 1]
    for outer in _indices(dims[: axis - 1]):
        for start in range(0, extent, step):
            stop = min(start + step, extent)
            yield RowBlock((*outer, slice(start, stop), *whole_slices), (stop - start, *inner))


def row_block_count(dims: Sequence[int], size: int, whole: int = 0) -> int:
    """Count the `row_blocks`."""
    if not math.prod(dims):
        return 0
    axis, step = _cut(dims, size, whole)
    return math.prod(dims[: axis - 1]) * -(-dims[axis - 1] // step) if axis else 1


def _cut(dims: Sequence[int], size: int, whole: int) -> tuple[int, int]:
    """Return the number of axes that are cut, and a block's extent along the last of them; (0, 0) if nothing is cut."""
    axis = len(dims) - whole
    while axis and math.prod(dims[axis - 1 :]) <= size:
        axis -= 1
    if not axis:
        return 0, 0
    extent, most = dims[axis - 1], max(1, size // math.prod(dims[axis:]))
    # Use as few parts as the size allows, and make them as equal as possible.
    return axis, -(-extent // -(-extent // most))


def _indices(dims: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not dims:
        yield ()
        return
    for first in range(dims[0]):
        yield from ((first, *rest) for rest in _indices(dims[1:]))


def bind_blocks(
    fused: FusedKernel, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray], threads: int
) -> list[KernelCall]:
    """Bind the calls that compute `results`: the ufuncs themselves if one block holds everything.

    Otherwise there is a call for each block, or one call for all blocks if there is enough work for several threads.
    Bits do not depend on `threads`. Raises TypeError for a kernel that `expand_functions` has expanded for a compiler.
    """
    divided, dims = blocks_of(fused, space), extents(fused, space)
    strides = _strides(fused, space)
    read = [
        _along(a, dims, operand.level == Level.ELEMENT, steps)
        for a, operand, steps in zip(operands, fused.operands, strides[: len(operands)], strict=True)
    ]
    written = [
        _parts(a, result, dims[-1], len(divided))
        if result.adds_up
        else _along(a, dims, result.kind == "element", steps)
        for a, result, steps in zip(results, fused.results, strides[len(operands) :], strict=True)
    ]
    # If there are several blocks, their parts of a sum are added at the end, in the order of the blocks.
    additions = [
        (np.add.reduce, (parts, 0, None, as_strided(a, parts.shape[1:], [a.itemsize] * (parts.ndim - 1))))
        for a, result, parts in zip(results, fused.results, written, strict=True)
        if result.adds_up and len(divided) != 1
    ]
    program = BlockProgram(fused, np.dtype(fused.dtype), _plan(fused, space))
    return [*block_calls(program, read, written, divided, threads), *additions]


def workspace_bytes(fused: FusedKernel, space: Space, threads: int, least_parts: int = 1) -> int:
    """Count the bytes that `bind_blocks` and its calls allocate: registers of a block's size, and parts of sums.

    If machine code runs the kernel, there may be more parts: `least_parts`.
    """
    first, count = first_block(fused, space)
    several = max(count, least_parts)
    parts = several * part_elements(fused, space) * np.dtype(fused.dtype).itemsize if several > 1 else 0
    shares = max(1, min(threads, count)) if space.length >= LEAST_SHARED else 1
    return parts + block_bytes(fused, np.dtype(fused.dtype), _plan(fused, space), first, shares)


def block_calls(
    program: BlockProgram,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    divided: Sequence[RowBlock],
    threads: int,
) -> list[KernelCall]:
    """Bind the calls for all blocks. Each thread has registers of its own.

    Arrays have all axes of the space, the columns last, with extent 1 if there is one value a row. Results that are
    sums are given as the parts of the blocks, one after another.
    """
    largest = {level: _largest(divided, level) for level in (Level.ROW, Level.ELEMENT)}
    spread = [(Level.ELEMENT, np.full(largest[Level.ELEMENT], value)) for value in program.spread]
    shares: list[list[list[KernelCall]]] = []
    for numbers in _shares(divided, threads):
        memory = _Memory([*((level, np.empty(largest[level], dtype)) for level, dtype in program.registers), *spread])
        shares.append([_calls_of(program, operands, results, memory, n, divided[n]) for n in numbers])
    # Each list of calls is bound to the registers of one thread, so threads share lists rather than blocks.
    if len(shares) > 1:
        parts = [[call for calls in part for call in calls] for part in shares]
        return [(share, (partial(_make_parts, parts), len(parts), range(len(parts))))]
    return [(make_calls, (calls,)) for calls in shares[0]] if len(divided) > 1 else shares[0][0] if shares[0] else []


def calls_by_block(
    program: BlockProgram, operands: Sequence[HostArray], results: Sequence[HostArray], divided: Sequence[RowBlock]
) -> Iterator[KernelCall]:
    """Yield the call for each block, bound on demand: those of a long formula on many blocks would take megabytes.

    Otherwise like `block_calls` with one thread, for results that are not sums.
    """
    largest = {level: _largest(divided, level) for level in (Level.ROW, Level.ELEMENT)}
    registers = [(level, np.empty(largest[level], dtype)) for level, dtype in program.registers]
    spread = [(Level.ELEMENT, np.full(largest[Level.ELEMENT], value)) for value in program.spread]
    memory = _Memory([*registers, *spread])
    for number, block in enumerate(divided):
        yield make_calls, (_calls_of(program, operands, results, memory, number, block),)


class _Memory:
    """Registers and spread constants of one thread, as large as the largest block, and views of them by shape."""

    def __init__(self, arrays: Sequence[tuple[Level, HostArray]]) -> None:
        self._arrays = arrays
        self._views: dict[tuple[int, ...], list[HostArray]] = {}

    def arrays(self, shape: tuple[int, ...]) -> list[HostArray]:
        """Return the arrays for a block of this shape, cached."""
        if shape not in self._views:
            extents = {Level.ELEMENT: shape, Level.ROW: (*shape[:-1], 1)}
            self._views[shape] = [x[: math.prod(extents[level])].reshape(extents[level]) for level, x in self._arrays]
        return self._views[shape]


def _calls_of(
    program: BlockProgram,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    memory: _Memory,
    number: int,
    block: RowBlock,
) -> list[KernelCall]:
    """Bind the calls for the block with this number."""
    written = [
        _part_in(x, block) if not result.adds_up else x[number, : block.shape[-1]] if x.ndim == 2 else x[number, ...]
        for x, result in zip(results, program.fused.results, strict=True)
    ]
    return program.calls([*(_part_in(x, block) for x in operands), *written, *memory.arrays(block.shape)], block.shape)


def _part_in(array: HostArray, block: RowBlock) -> HostArray:
    """Return the block's part of an array; if the array has one value a row, the block's rows."""
    part: HostArray = array[block.place if array.shape[-1] != 1 else block.rows]
    return part


def _make_parts(parts: Sequence[Sequence[KernelCall]], first: int, past: int, _: int) -> None:
    """Make the calls of some parts, each of which has memory of its own."""
    for part in parts[first:past]:
        make_calls(part)


def block_bytes(
    fused: FusedKernel, number: np.dtype[Any], plan: Registers, divided: Sequence[RowBlock], shares: int
) -> int:
    """Count the bytes that `block_calls` and its calls allocate for the largest block, with `shares` threads."""
    size = _largest(divided, Level.ELEMENT)
    memory = sum(_largest(divided, r.level) * dtype_of(r, number).itemsize for r in plan.registers)
    functions = {fused.instructions[n].op for n in plan.homes} & ARRAY_FUNCTIONS.keys()
    blocks = max((block_workspace(size, ARRAY_FUNCTIONS[op].arrays) for op in functions), default=0)
    spread = sum(dtype_of(fused.instructions[n], number).itemsize for n in spread_scalars(fused, plan)) * size
    return shares * (memory + blocks) + spread


def _plan(fused: FusedKernel, space: Space) -> Registers:
    """Assign registers; results with a layout that ufuncs handle well are computed in place."""
    dims = extents(fused, space)
    direct = {
        j
        for j, (result, steps) in enumerate(
            zip(fused.results, _strides(fused, space)[len(fused.operands) :], strict=True)
        )
        if not result.adds_up and is_direct(fused, result, _is_dense(dims[:-1], steps, dims[-1]))
    }
    return assign_registers(fused, direct=frozenset(direct))


def is_direct(fused: FusedKernel, result: KernelResult, dense: bool) -> bool:
    """Whether a scalar can be computed in its result's memory: dense, unless a single ufunc computes the scalar."""
    instruction = fused.instructions[result.value]
    as_wide = (instruction.level == Level.ELEMENT) == (result.kind == "element")
    return as_wide and not is_folded(fused, result.value) and (dense or instruction.op in {*UFUNCS, *FOLDS})


def _is_dense(rows: Sequence[int], steps: Sequence[int], columns: int) -> bool:
    dense = [columns * math.prod(rows[i + 1 :]) for i in range(len(rows))]
    return all(extent == 1 or step == dense_step for extent, step, dense_step in zip(rows, steps, dense, strict=True))


def _strides(fused: FusedKernel, space: Space) -> list[tuple[int, ...]]:
    """Return the strides along the row axes of `extents`, in elements."""
    if is_flat(fused, space):
        return [(0,)] * len(space.strides)
    return [steps if space.rows else (0,) for steps in space.strides]


def _along(array: HostArray, dims: Sequence[int], has_columns: bool, steps: Sequence[int]) -> HostArray:
    """View an operand or a result along all axes."""
    shape = (*dims[:-1], dims[-1] if has_columns else 1)
    return as_strided(array, shape, [step * array.itemsize for step in (*steps, 1)])


def _parts(array: HostArray, result: KernelResult, columns: int, blocks: int) -> HostArray:
    """Return the array for the blocks' sums: the result itself, if there is one block."""
    shape = (blocks, columns) if result.kind == "columns" else (blocks,)
    if blocks == 1:
        return as_strided(array, shape, [array.itemsize] * len(shape))
    return np.zeros(shape, array.dtype)


def _shares(divided: Sequence[RowBlock], threads: int) -> list[range]:
    """Divide the numbers of the blocks among threads; one thread, if there is too little work for two."""
    if sum(block.size for block in divided) < LEAST_SHARED:
        threads = 1
    count = max(1, min(threads, len(divided)))
    ends = [len(divided) * i // count for i in range(count + 1)]
    return [range(start, stop) for start, stop in pairwise(ends)]


def _largest(divided: Sequence[RowBlock], level: Level) -> int:
    """Return the elements of a register that is large enough for every block."""
    return max((math.prod(block.shape if level == Level.ELEMENT else block.shape[:-1]) for block in divided), default=0)


# A fused kernel on whole arrays of any array module: the version a GPU runs if it has no compiled kernel.
#
# Each scalar is an array, freed after its last use.

#: ufunc that reduces → the function of whole arrays
_REDUCE = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
#: largest result, in elements, whose calls are bound: beyond, keeping arrays of its size would save little time
MOST_BOUND = 1 << 12


class WholeArrayKernel:
    """A kernel prepared for whole arrays, with numbers of any dtype. Operands and results are cast.

    Results are of the kinds element and row. Raises TypeError for other kinds, and for primitives that only compiled
    kernels have.
    """

    def __init__(self, fused: FusedKernel, number: DType) -> None:
        if any(result.adds_up for result in fused.results):
            raise TypeError("sums over rows are for kernels")
        order, scalars = needed(fused), fused.instructions
        dtypes = {n: dtype_of(scalars[n], number) for n in order}
        self.fused, self.stored = fused, [result.value for result in fused.results]
        # A scalar that is stored in several results is computed in the first of them: the last assignment to a key
        # wins.
        self.places = {value: (j, dtypes[value]) for j, value in reversed([*enumerate(self.stored)])}
        self.constants = {n: dtypes[n].type(scalars[n].data) for n in order if scalars[n].op == "constant"}
        self.loads = [(n, scalars[n].data, dtypes[n]) for n in order if scalars[n].op == "load"]
        self.computed = [n for n in order if scalars[n].op not in ("constant", "load")]
        last_use = {a: n for n in order for a in scalars[n].args if a not in self.stored}
        self.ended = {n: [a for a, last in last_use.items() if last == n] for n in self.computed}

    def fill(self, run: RunContext, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Fill `results` by broadcasting; ROW operands and results have extent 1 in place of the columns."""
        values: dict[int, Array] = self.constants.copy()
        for n, operand, dtype in self.loads:
            x = operands[operand]
            values[n] = x if x.dtype == dtype else x.astype(dtype)
        for n in run.checked(self.computed):
            result_place = self.places.get(n)
            out = (
                results[result_place[0]]
                if result_place is not None and results[result_place[0]].dtype == result_place[1]
                else None
            )
            values[n] = self.compute(run, n, [values[a] for a in self.fused.instructions[n].args], out)
            for a in self.ended[n]:
                del values[a]
        for value, result in zip(self.stored, results, strict=True):
            if values[value] is not result:
                run.xp.copyto(result, values[value], casting="unsafe")

    def compute(self, run: RunContext, n: int, read: Sequence[Array], out: Array | None) -> Array:
        """Compute the scalar with this number: into `out` if a single ufunc writes it, else into a new array."""
        xp, op = run.xp, self.fused.instructions[n].op
        if op in FOLDS:
            return getattr(xp, _REDUCE[FOLDS[op]])(*read, axis=-1, keepdims=True)
        if op in ("select", "choose"):
            return xp.where(*read)
        if op not in ARRAY_FUNCTIONS:
            return ufunc_of(xp, op)(*read, out=out)
        (x,) = read
        result = xp.empty(x.shape, x.dtype)
        fill_function(run, op, x, result)
        return result


class _Rows(NamedTuple):
    """Rows of one length: the number of the first, the extents of the row axes, and the columns."""

    first: int
    extents: tuple[int, ...]
    columns: int


def run_on_arrays(
    run: RunContext, fused: FusedKernel, space: Space, operands: Sequence[Array], results: Sequence[Array]
) -> None:
    """Fill results of all kinds. Arrays begin at row 0, column 0 of the space and have its strides.

    Raises TypeError for primitives that only compiled kernels have.
    """
    sums = [(array, result) for array, result in zip(results, fused.results, strict=True) if result.adds_up]
    for array, _ in sums:
        array.fill(0)
    # Elements or rows of a sum are computed like other results, into temporary arrays, and then summed here.
    stored = tuple(
        KernelResult("element" if r.kind in ("element", "columns") else "row", r.value) for r in fused.results
    )
    whole = WholeArrayKernel(fused._replace(results=stored), np.dtype(fused.dtype))
    levels = [operand.level for operand in fused.operands]
    for rows in _chunks(space):
        read = [
            _over(run.xp, array, rows, level, steps)
            for array, level, steps in zip(operands, levels, space.strides[: len(operands)], strict=True)
        ]
        written = [
            run.xp.empty((*rows.extents, rows.columns if result.kind == "columns" else 1), array.dtype)
            if result.adds_up
            else _over(run.xp, array, rows, Level.ELEMENT if result.kind == "element" else Level.ROW, steps)
            for array, result, steps in zip(results, fused.results, space.strides[len(operands) :], strict=True)
        ]
        whole.fill(run, read, written)
        for array, result, part in zip(results, fused.results, written, strict=True):
            if result.adds_up:
                block_sums = part.reshape(-1, part.shape[-1]).sum(axis=0)
                sums_so_far = array.reshape(-1)[: block_sums.size]
                sums_so_far += block_sums


def _chunks(space: Space) -> Iterator[_Rows]:
    """Yield all rows, or first the whole rows and then the short last row."""
    count = math.prod(space.rows)
    last_columns = space.length - (count - 1) * space.columns
    if not count or last_columns == space.columns:
        yield _Rows(0, space.rows, space.columns)
        return
    if count > 1:
        yield _Rows(0, (count - 1,), space.columns)
    yield _Rows(count - 1, (1,), last_columns)


def _over(xp: Namespace, array: Array, rows: _Rows, level: Level, steps: Sequence[int]) -> Array:
    """View the given rows of an array."""
    width, size = rows.columns if level == Level.ELEMENT else 1, array.itemsize
    if rows.first:
        array = array.reshape(-1)[rows.first * steps[0] :]
    return xp.lib.stride_tricks.as_strided(array, (*rows.extents, width), [size * step for step in (*steps, 1)])


class ElementKernel:
    """A formula for one element in dtype `number`, as a kernel: block by block on NumPy, on whole arrays on CuPy.

    Operands, of `dtypes`, broadcast to the result and are cast when the kernel reads them. The result is cast to
    `dtype` when it is stored.
    """

    def __init__(self, fused: FusedKernel, number: DType, dtypes: Sequence[DType], dtype: DType) -> None:
        self.fused, self.number = fused, number
        self.result_dtype = dtype_of(fused.instructions[fused.results[0].value], number)
        operand_dtypes = [dtype_of(operand, number) for operand in fused.operands]
        # Operands of another dtype are first cast into registers. A result of the formula's own dtype is computed in
        # place.
        copied = frozenset(
            i for i, (given, expected) in enumerate(zip(dtypes, operand_dtypes, strict=True)) if given != expected
        )
        direct = dtype == self.result_dtype and is_direct(fused, fused.results[0], dense=True)
        self._plan = assign_registers(fused, copied, frozenset({0} if direct else ()))

    @DeviceMethod
    def fill(self, run: RunContext, operands: Sequence[Array], out: Array) -> None:
        """Compute the result; on NumPy, into a dense `out`, with memory that does not grow with it."""
        self._whole.fill(run, operands, [out])

    @fill.on("cpu")
    def _fill_in_blocks(self, run: RunContext, operands: Sequence[HostArray], out: HostArray) -> None:
        program = self._program
        if out.size <= SHARED_ROW_BLOCK or program.is_one_ufunc:
            make_calls(self._at_once(operands, out, program.spread))
            return
        # If all arrays are laid out like the result, they are flattened, and blocks need no index along several axes.
        same_layout = all(not x.ndim or (x.shape == out.shape and x.flags.c_contiguous) for x in operands)
        shape = (out.size,) if same_layout else out.shape
        read = [x.reshape(shape) if same_layout and x.ndim else np.broadcast_to(x, shape) for x in operands]
        blocks = list(row_blocks(shape, block_elements(out.size)))
        make_calls(run.checked(calls_by_block(program, read, [out.reshape(shape)], blocks)))

    @DeviceMethod
    def bind(self, run: RunContext, operands: Sequence[Array], out: Array) -> KernelCall:
        """Bind the call of `fill`; for a small result on NumPy, the ufuncs themselves."""
        return self._whole.fill, (run, operands, [out])

    @bind.on("cpu")
    def _bind_blocks(self, run: RunContext, operands: Sequence[HostArray], out: HostArray) -> KernelCall:
        if out.size > MOST_BOUND:
            return self._fill_in_blocks, (run, operands, out)
        return join_calls(self._at_once(operands, out, [np.full(out.shape, x) for x in self._program.spread]))

    def _at_once(
        self, operands: Sequence[HostArray], out: HostArray, spread: Sequence[HostArray]
    ) -> Sequence[KernelCall]:
        """Bind the calls for a single block with all elements."""
        program = self._program
        return program.calls([*operands, out, *program.memory(out.shape), *spread], out.shape)

    def workspace(self, size: int) -> int:
        """Return the bytes that `fill` allocates on NumPy for a result of `size` elements."""
        if self._program.is_one_ufunc:
            return 0
        divided = list(islice(row_blocks((size,), block_elements(size)), 1))
        return block_bytes(self.fused, self.number, self._plan, divided, 1)

    @cached_property
    def _program(self) -> BlockProgram:
        return BlockProgram(self.fused, self.number, self._plan)

    @cached_property
    def _whole(self) -> WholeArrayKernel:
        return WholeArrayKernel(self.fused, self.number)
