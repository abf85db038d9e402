"""The op that fusion puts in place of a group of nodes: one loop over memory, with several results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.graph.op import Kernel, Namespace, ResultTypes
from engine.graph.tensor_type import TensorType
from engine.loops.blocks import bind_blocks, workspace_bytes
from engine.loops.native import native_workspace
from engine.loops.program import Loop, Space
from engine.loops.turns import make_calls


@dataclass(frozen=True, eq=False)
class Fused(Kernel):
    """The results of `loop` over `space`, of `types`. No op of the opset: one is made for each group.

    `work` are the FLOPs of the nodes whose place it takes, and `nodes` their numbers in the graph as it was; `compiled`
    says that it is to run as machine code.
    """

    loop: Loop
    space: Space
    types: tuple[TensorType, ...]
    work: int
    nodes: tuple[int, ...] = ()
    compiled: bool = False

    name = "fused"
    operands = ("x...",)
    several = True
    internal = True

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """`types`."""
        return self.types

    def forward(self, xp: Namespace, *arrays: Any, out: Any, **attrs: Any) -> None:
        """By NumPy's ufuncs, block by block."""
        make_calls(bind_blocks(self.loop, self.space, arrays, out, 1))

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Those of the nodes whose place it takes."""
        return self.work

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """What lies between the steps of a row, or of a block; and parts of sums."""
        count = native_workspace if self.compiled else workspace_bytes
        return count(self.loop, self.space, 1)
