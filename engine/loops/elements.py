"""A formula for one element as a kernel of its own: on arrays of NumPy block by block, on those of CuPy whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from engine.graph.op import Array, KernelCall, Namespace
from engine.graph.tensor_type import DType, HostArray
from engine.loops.block_calls import Frame
from engine.loops.blocks import bind_frame, frame_bytes, is_direct
from engine.loops.program import Loop
from engine.loops.registers import Registers, assign_registers
from engine.loops.row_blocks import SHARED_ROW_BLOCK, block_elements, row_blocks
from engine.loops.ufuncs import UFUNCS
from engine.loops.whole import WholeLoop
from engine.native.calls import make_calls

#: elements of a result whose calls are worth binding: beyond, arrays of its size would be kept to save little time
MOST_BOUND = 1 << 12


class ElementKernel:
    """A loop with one result, an element's, whose numbers are computed with in the dtype `number`.

    Operands broadcast to the result, and are cast as the loop reads them; the result is cast when it is stored.
    """

    def __init__(self, loop: Loop, number: DType) -> None:
        self.loop, self.number = loop, number
        self.reads = [self._dtype(operand.type) for operand in loop.operands]
        self.gives = self._dtype(loop.instructions[loop.results[0].value].type)
        self.whole = WholeLoop(loop, number)
        computed = [i.op for i in loop.instructions if i.op not in ("constant", "load")]
        self._is_single = len(computed) == 1 and computed[0] in UFUNCS

    def fill(self, xp: Namespace, operands: Sequence[Array], out: Array) -> None:
        """Compute; on NumPy in memory that does not grow with `out`."""
        if xp is not np or out.size <= SHARED_ROW_BLOCK or self._is_one_call(operands, out):
            self.whole.fill(xp, operands, [out])
        else:
            make_calls(self.calls(operands, out))

    def calls(self, operands: Sequence[HostArray], out: HostArray, threads: int = 1) -> list[KernelCall]:
        """The calls after which `out`, dense, is complete; they can be made again for other numbers in these arrays."""
        alike = all(not x.ndim or (x.shape == out.shape and x.flags.c_contiguous) for x in operands)
        shape = (out.size,) if alike else out.shape
        read = [x.reshape(shape) if alike and x.ndim else np.broadcast_to(x, shape) for x in operands]
        divided = list(row_blocks(shape, block_elements(out.size)))
        plan = self._plan([x.dtype for x in operands], out.dtype)
        return bind_frame(Frame(self.loop, self.number, plan, read, [out.reshape(shape)], divided), threads)

    def workspace(self, size: int, dtypes: Sequence[DType], dtype: DType) -> int:
        """Bytes that `fill` allocates on NumPy for a result of `size` elements and this dtype."""
        if self._is_single and dtype == self.gives and list(dtypes) == self.reads:
            return 0
        divided = list(islice(row_blocks((size,), block_elements(size)), 1))
        return frame_bytes(self.loop, self.number, self._plan(dtypes, dtype), divided, 1)

    def _dtype(self, type: str) -> DType:
        return np.dtype(bool) if type == "bool" else self.number

    def _is_one_call(self, operands: Sequence[Array], out: Array) -> bool:
        return self._is_single and out.dtype == self.gives and [x.dtype for x in operands] == self.reads

    def _plan(self, dtypes: Sequence[DType], dtype: DType) -> Registers:
        copied = frozenset(i for i, (here, wanted) in enumerate(zip(dtypes, self.reads, strict=True)) if here != wanted)
        direct = dtype == self.gives and is_direct(self.loop, self.loop.results[0], dense=True)
        return assign_registers(self.loop, copied, frozenset({0} if direct else ()))
