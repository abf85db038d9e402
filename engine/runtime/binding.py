"""Binding of steps to the calls that run them: the base of the binders that know kernels, and an op's own call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.codegen.kernels.recurrence import Recurrence
from engine.codegen.native.native_call import LoadedKernel, Runner
from engine.compiler.plan import Step
from engine.ir.op import Array, KernelCall
from engine.ir.run_context import RunContext


class StepKernel(NamedTuple):
    """A kernel that runs all steps of a loop, and its recurrence, in which functions are written out."""

    code: LoadedKernel
    recurrence: Recurrence


class Binder:
    """Binder of each step to its op's own call."""

    #: makes native calls; None where there are none
    runner: Runner | None = None

    @property
    def has_kernels(self) -> bool:
        """Whether any step is bound to a kernel."""
        return False

    def has_kernel(self, step: Step) -> bool:
        """Whether this step is bound to a kernel."""
        return False

    def step_kernel(self, step: Step) -> StepKernel | None:
        """The kernel that runs all steps of a loop by itself; None where there is none."""
        return None

    def workspace(self, step: Step) -> int:
        """Bytes of memory that a step's calls work in. Steps run one at a time, so that all share it."""
        return 0

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Calls that compute `out` from `operands`, to be made in their order, again and again.

        The workspace of `run` has as many bytes as any step needs at most.
        """
        return bind_step(run, step, operands, out)


def bind_step(run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
    """The op's own call."""
    return (step.op.bind(run, operands, out, step.attrs),)
