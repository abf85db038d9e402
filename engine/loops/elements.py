"""A formula for one element as a kernel of its own: on arrays of NumPy block by block, on those of CuPy whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from engine.graph.by_device import DeviceMethod
from engine.graph.op import Array, KernelCall
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType, HostArray
from engine.loops.block_program import BlockProgram, dtype_of
from engine.loops.blocks import block_bytes, calls_by_block, is_direct
from engine.loops.program import Loop
from engine.loops.registers import assign_registers
from engine.loops.row_blocks import SHARED_ROW_BLOCK, block_elements, row_blocks
from engine.loops.whole import WholeLoop
from engine.native.calls import joined, make_calls

#: elements of a result whose calls are worth binding: beyond, arrays of its size would be kept to save little time
MOST_BOUND = 1 << 12


class ElementKernel:
    """A kernel with one result, an element's, whose numbers are computed with in the dtype `number`.

    Operands, of `dtypes`, broadcast to the result, and are cast as the kernel reads them; the result is cast to its
    `dtype` when it is stored.
    """

    def __init__(self, loop: Loop, number: DType, dtypes: Sequence[DType], dtype: DType) -> None:
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
        else:
            make_calls(run.through(self._in_blocks(operands, out)))

    @DeviceMethod
    def bind(self, run: RunContext, operands: Sequence[Array], out: Array) -> KernelCall:
        """The call that does as `fill`: for a small result on NumPy, of the ufuncs themselves."""
        return self._whole.fill, (run, operands, [out])

    @bind.on("cpu")
    def _bind_blocks(self, run: RunContext, operands: Sequence[HostArray], out: HostArray) -> KernelCall:
        if out.size > MOST_BOUND:
            return self._fill_in_blocks, (run, operands, out)
        return joined(self._at_once(operands, out, [np.full(out.shape, x) for x in self._program.spread]))

    def _at_once(
        self, operands: Sequence[HostArray], out: HostArray, spread: Sequence[HostArray]
    ) -> Sequence[KernelCall]:
        """The calls for one block of all there is."""
        program = self._program
        return program.calls([*operands, out, *program.memory(out.shape), *spread], out.shape)

    def _in_blocks(self, operands: Sequence[HostArray], out: HostArray) -> Iterator[KernelCall]:
        alike = all(not x.ndim or (x.shape == out.shape and x.flags.c_contiguous) for x in operands)
        shape = (out.size,) if alike else out.shape
        read = [x.reshape(shape) if alike and x.ndim else np.broadcast_to(x, shape) for x in operands]
        divided = list(row_blocks(shape, block_elements(out.size)))
        return calls_by_block(self._program, read, [out.reshape(shape)], divided)

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
    def _whole(self) -> WholeLoop:
        return WholeLoop(self.loop, self.number)
