"""The fused kernel: the op that takes the place of a group of nodes, and the layout of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.functions.expansions import expand_functions, reports_range
from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import DTYPES
from engine.graph.op import Kernel, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray, TensorType
from engine.loops.blocks import bind_blocks, workspace_bytes
from engine.loops.compiled import block_count, native_workspace
from engine.loops.program import Loop, Space
from engine.loops.whole import run_on_arrays
from engine.native.calls import make_calls


@dataclass(frozen=True, eq=False)
class Fused(Kernel):
    """The results of `loop` over `space`, of `types`. No op of the opset: one is made for each group.

    `work` are the FLOPs of the nodes whose place it takes, and `nodes` their numbers in the graph as it was; `compiled`
    says that it is to run as machine code. At most `threads` take part in it.
    """

    loop: Loop
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
        """`types`."""
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
        """Bytes of workspace for so many threads. What NumPy may run has as much as most kernels take, too."""
        if self.compiled:
            return native_workspace(self.expanded, self.space, threads)
        blocks = block_count(self.space)
        counts = 8 * blocks if reports_range(self.loop) else 0
        return workspace_bytes(self.loop, self.space, threads, blocks) + counts

    @cached_property
    def expanded(self) -> Loop:
        """The kernel as it is compiled, its functions written out."""
        return expand_functions(self.loop)


_run_loop = DeviceFunction(run_on_arrays)


@_run_loop.on("cpu")
def _run_in_blocks(
    run: RunContext, loop: Loop, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray]
) -> None:
    make_calls(run.through(bind_blocks(loop, space, operands, results, 1)))
