"""Binders: bind each step of a plan to the calls that run it. This base class binds to the ops' own implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.codegen.kernels.recurrence import Recurrence
from engine.codegen.native.native_call import LoadedKernel, Runner
from engine.compiler.plan import Step
from engine.ir.op import Array, KernelCall
from engine.ir.run_context import RunContext


class StepKernel(NamedTuple):
    """A kernel that runs all steps of a loop, and its recurrence, with functions expanded to arithmetic."""

    code: LoadedKernel
    recurrence: Recurrence


class Binder:
    """Binder of each step to its op's implementation."""

    #: runner of native calls, or None if there are none
    runner: Runner | None = None

    @property
    def has_kernels(self) -> bool:
        """Whether any step is bound to a kernel."""
        return False

    def has_kernel(self, step: Step) -> bool:
        """Whether this step is bound to a kernel."""
        return False

    def step_kernel(self, step: Step) -> StepKernel | None:
        """Return the kernel that runs all steps of a loop in one call, or None."""
        return None

    def workspace(self, step: Step) -> int:
        """Return the bytes of a step's workspace. Steps run one at a time, and share it."""
        return 0

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Return the calls that compute `out` from `operands`. They are made in order, any number of times.

        The workspace of `run` is as large as the largest that any step needs.
        """
        return bind_step(run, step, operands, out)


def bind_step(run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
    """Bind a step to its op's implementation."""
    return (step.op.bind(run, operands, out, step.attrs),)
