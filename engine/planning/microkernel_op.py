"""The op that takes the place of a node whose op has microkernels for its shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.graph.dtypes import DTYPES
from engine.graph.op import Kernel, ResultTypes
from engine.graph.run_context import RunContext
from engine.microkernels.recipe import Recipe


@dataclass(frozen=True, eq=False, repr=False)
class MicrokernelOp(Kernel):
    """`op`, made by `recipe` with at most `threads` threads. No op of the opset: one is made for each node."""

    op: Kernel
    made_by: Recipe
    threads: int

    name = "microkernel"
    operands = ("x...",)
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        # Which attributes there are is stated by a class, elsewhere.
        object.__setattr__(self, "attrs", self.op.attrs)

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Infer as the op does."""
        return self.op.infer(*types, **attrs)

    def forward(self, run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        """Run the op."""
        self.op.forward(run, *arrays, out=out, **attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the op."""
        return self.op.flops(out, *types, **attrs)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Memory that the kernels work in."""
        return self.made_by.workspace(self.threads)
