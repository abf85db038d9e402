"""The fused kernel: the op that takes the place of a group of nodes, and the layout of its operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

from engine.codegen.functions.expansions import expand_functions, reports_range
from engine.codegen.kernels.blocks import bind_blocks, workspace_bytes
from engine.codegen.kernels.compiled import block_count, native_workspace
from engine.codegen.kernels.program import FusedKernel, Level, Space
from engine.codegen.kernels.whole_arrays import run_on_arrays
from engine.codegen.native.native_call import make_calls
from engine.ir.dtypes import DTYPES
from engine.ir.op import Kernel, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.tensor_type import HostArray, Shape, TensorType


@dataclass(frozen=True, eq=False)
class Fused(Kernel):
    """The results of `loop` over `space`, of `types`. No op of the opset: one is made for each group.

    `work` are the FLOPs of the nodes whose place it takes, and `nodes` their numbers in the graph as it was; `compiled`
    says that it is to run as machine code. At most `threads` take part in it.
    """

    loop: FusedKernel
    space: Space
    types: tuple[TensorType, ...]
    work: int
    nodes: tuple[int, ...] = ()
    compiled: bool = False
    threads: int = 1

    name = "fused"
    operands = ("x...",)
    several = True
    internal = True
    dtypes = DTYPES

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Return `types`."""
        return self.types

    def forward(self, run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        """Run NumPy's ufuncs, block by block; on a card, CuPy's, all of it at once."""
        _run_loop(run, self.loop, self.space, arrays, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the nodes whose place it takes."""
        return self.work

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Bytes between the steps of a row, or of a block, for each thread; and parts of sums."""
        return self.works_in(self.threads)

    def works_in(self, threads: int) -> int:
        """Bytes of workspace for so many threads. A kernel that NumPy may run has as much as most others, too."""
        if self.compiled:
            return native_workspace(self.expanded, self.space, threads)
        blocks = block_count(self.space)
        counts = 8 * blocks if reports_range(self.loop) else 0
        return workspace_bytes(self.loop, self.space, threads, blocks) + counts

    @cached_property
    def expanded(self) -> FusedKernel:
        """The kernel as it is compiled, its functions written out."""
        return expand_functions(self.loop)


_run_loop = DeviceFunction(run_on_arrays)


@_run_loop.on("cpu")
def _run_in_blocks(
    run: RunContext, loop: FusedKernel, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray]
) -> None:
    make_calls(run.through(bind_blocks(loop, space, operands, results, 1)))


# Layout of operands over the rows and columns of a kernel, as the strides of its space.

#: elements of a row where rows mean nothing: long enough for its lanes, short for the sums of its parts
FLAT_ROW: Final = 4096
#: elements of a block: what two or three arrays of are in a core's own cache
BLOCK_ELEMENTS: Final = 1 << 14
#: sums over rows have at most so many parts
MOST_SUMS: Final = 64

Strides = tuple[int, ...]


class RowLayout(NamedTuple):
    """A kernel's rows: their extents and columns, and for each operand its level and its steps along the row axes."""

    rows: Shape
    columns: int
    length: int
    operands: tuple[tuple[Level, Strides], ...]
    #: steps of a result that has one value an element, and of one that has one a row
    element: Strides
    row: Strides

    def space(self, results: Sequence[Strides], *, sums_columns: bool) -> Space:
        """Choose blocks, and append the strides of the results to those of the operands."""
        block = max(1, BLOCK_ELEMENTS // max(self.columns, 1))
        if sums_columns:
            block = max(block, -(-math.prod(self.rows) // MOST_SUMS))
        return Space(self.rows, self.columns, self.length, block, (*(s for _, s in self.operands), *results))


def lay_out(shape: Shape, operands: Sequence[TensorType], row_axes: int | None) -> RowLayout | None:
    """Lay out operands that broadcast to `shape`; return None if one of them does not, or has no rows to read.

    `row_axes` are the trailing axes that make a row; with None, as many as all operands allow.
    """
    if not all(_broadcasts(operand.shape, shape) for operand in operands):
        return None  # a kernel would read beside it
    strides = [_over(shape, operand) for operand in operands]
    if row_axes is not None:
        return _in_rows(shape, strides, row_axes)
    dense = _dense(shape)
    if all(s == dense or not any(s) for s in strides):
        size = math.prod(shape)
        columns = min(size, FLAT_ROW)
        flat = tuple((Level.ELEMENT, (columns,)) if s == dense else (Level.ROW, (0,)) for s in strides)
        return RowLayout((-(-size // columns),), columns, size, flat, (columns,), (1,))
    layouts = (_in_rows(shape, strides, rows) for rows in range(len(shape), 0, -1))
    return next((layout for layout in layouts if layout is not None), None)


def _broadcasts(operand: Shape, shape: Shape) -> bool:
    """Whether extents are those of the trailing axes of `shape`, or 1."""
    lead = len(shape) - len(operand)
    return lead >= 0 and all(e in (1, extent) for e, extent in zip(operand, shape[lead:], strict=True))


def _over(shape: Shape, operand: TensorType) -> Strides:
    """Return the elements to step along each axis of `shape`; 0 where the operand is repeated, or has one element."""
    lead = len(shape) - operand.ndim
    steps = [s // operand.dtype.itemsize if e != 1 else 0 for e, s in zip(operand.shape, operand.strides, strict=True)]
    return (0,) * lead + tuple(steps)


def _dense(shape: Shape) -> Strides:
    """Return the steps of a dense tensor; 0 along axes of extent 1."""
    return tuple(math.prod(shape[i + 1 :]) if e != 1 else 0 for i, e in enumerate(shape))


def _in_rows(shape: Shape, strides: Sequence[Strides], row_axes: int) -> RowLayout | None:
    """Lay out the trailing `row_axes` as columns, and the axes before them as rows, as few as can be."""
    cut = len(shape) - row_axes
    dense = _dense(shape)
    levels = [_level(s[cut:], dense[cut:]) for s in strides]
    if None in levels:
        return None
    columns = math.prod(shape[cut:])
    row = tuple(step // columns for step in dense[:cut])
    kept = _merged(shape[:cut], [s[:cut] for s in (*strides, dense, row)])
    # Each axis that is kept takes in those before it, down to the one that is kept before.
    starts = [0, *(a + 1 for a in kept)]
    extents = tuple(math.prod(shape[start : a + 1]) for start, a in zip(starts, kept, strict=False)) or (1,)
    *steps, element, each = (tuple(s[a] for a in kept) or (0,) for s in (*strides, dense, row))
    operands = tuple((level, s) for level, s in zip(levels, steps, strict=True) if level is not None)
    return RowLayout(extents, columns, math.prod(shape), operands, element, each)


def _level(steps: Strides, dense: Strides) -> Level | None:
    if not any(steps):
        return Level.ROW if any(dense) or not dense else Level.ELEMENT
    return Level.ELEMENT if steps == dense else None


def _merged(extents: Shape, strides: Sequence[Strides]) -> list[int]:
    """Merge neighbouring axes along which all arrays step as along one; return the inner axis of each run."""
    axes = [a for a, extent in enumerate(extents) if extent != 1]
    alone = [a for a, b in pairwise(axes) if not all(s[a] == s[b] * extents[b] for s in strides)]
    return alone + axes[-1:]
