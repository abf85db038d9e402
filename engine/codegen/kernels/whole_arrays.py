"""A fused kernel on whole arrays of any array module: what a card runs if no kernel of it is compiled.

Each scalar is an array, freed when nothing reads it any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from engine.codegen.kernels.array_functions import ARRAY_FUNCTIONS, fill_function
from engine.codegen.kernels.block_program import BlockProgram, assign_registers, dtype_of, needed
from engine.codegen.kernels.blocks import (
    SHARED_ROW_BLOCK,
    block_bytes,
    block_elements,
    calls_by_block,
    is_direct,
    row_blocks,
)
from engine.codegen.kernels.program import FusedKernel, KernelResult, Level, Space
from engine.codegen.kernels.ufuncs import FOLDS, ufunc_of
from engine.codegen.native.native_call import joined, make_calls
from engine.ir.op import Array, KernelCall, Namespace
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.tensor_type import DType, HostArray

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
