"""From a step to the calls that run it. What fuses steps, or has kernels of its own, puts its binder in this place."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.op import Array, KernelCall, Namespace
from engine.graph.tensor_type import HostArray
from engine.native.runner import Runner
from engine.planning.plan import Step


class Binder:
    """Binds each step to its op's own call."""

    #: makes native calls, where there are some and there is one
    runner: Runner | None = None

    @property
    def has_kernels(self) -> bool:
        """Whether any step is bound to a kernel."""
        return False

    def workspace(self, step: Step) -> int:
        """Bytes of memory that a step's calls work in: no other step's are made meanwhile, so that all share it."""
        return 0

    def calls(
        self, xp: Namespace, step: Step, operands: Sequence[Array], out: Array, workspace: HostArray
    ) -> Sequence[KernelCall]:
        """What makes `out` of `operands`: calls to be made in their order, again and again.

        `workspace` has as many bytes as the steps want at most, which nothing is left in from call to call.
        """
        return bind_step(xp, step, operands, out)


def bind_step(xp: Namespace, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
    """The op's own call."""
    return (step.op.bind(xp, operands, out, step.attrs),)
