"""From a step to the calls that run it. What fuses steps, or has kernels of its own, puts its binder in this place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.graph.op import Array, KernelCall, Namespace
from engine.planning.plan import Step

#: (array module, step, operands, where the result goes) → calls to be made in their order
Binder = Callable[[Namespace, Step, Sequence[Array], Array], Sequence[KernelCall]]


def bind_step(xp: Namespace, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
    """The op's own call."""
    return (step.op.bind(xp, operands, out, step.attrs),)
