"""The op that fusion puts in place of a group of nodes: one loop over memory, with several results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.graph.op import Kernel, Namespace, ResultTypes
from engine.graph.tensor_type import TensorType
from engine.loops.blocks import bind_blocks, workspace_bytes
from engine.loops.program import Loop, Space


@dataclass(frozen=True, eq=False)
class Fused(Kernel):
    """The results of `loop` over `space`, of `types`. No op of the opset: one is made for each group.

    `work` are the FLOPs of the nodes whose place it takes.
    """

    loop: Loop
    space: Space
    types: tuple[TensorType, ...]
    work: int

    name = "fused"
    operands = ("x...",)
    several = True
    internal = True

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """`types`."""
        return self.types

    def forward(self, xp: Namespace, *arrays: Any, out: Any, **attrs: Any) -> None:
        """By NumPy's ufuncs, block by block."""
        for function, args in bind_blocks(self.loop, self.space, arrays, out, 1, xp):
            function(*args)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Those of the nodes whose place it takes."""
        return self.work

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Blocks, and the sums of parts."""
        return workspace_bytes(self.loop, self.space, 1)
