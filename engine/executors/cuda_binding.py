"""From a step to the calls that run it on a card: kernels of ours for loops that have some, else the op's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from engine.executors.binding import Binder
from engine.executors.cuda_kernels import CompiledCudaLoop, CudaCode, CudaKernels
from engine.graph.op import Array, Kernel, KernelCall
from engine.graph.precision import IEEE, Precision
from engine.graph.run_context import RunContext
from engine.planning.plan import Plan, Step


class CudaBinder(Binder):
    """Binds loops to their kernels, where there are any, else to functions of CuPy on whole arrays."""

    def __init__(self, compiled: Mapping[Kernel, CudaCode]) -> None:
        self._compiled = compiled

    @property
    def has_kernels(self) -> bool:
        """Whether any loop is."""
        return bool(self._compiled)

    def workspace(self, step: Step) -> int:
        """That of a kernel: what other ops take, they take of the pool."""
        found = self._compiled.get(step.op)
        return 0 if found is None else found.workspace

    def precision(self, step: Step) -> Precision:
        """How products and convolutions of a step read float32: CuPy's do as IEEE has it, whatever a plan allows."""
        return IEEE

    def launches(
        self, run: RunContext, step: Step, operands: Sequence[Array], out: Any, flag: int
    ) -> Sequence[KernelCall]:
        """As `calls`; `flag` is the address of a byte that becomes 1 where a loop is out of range."""
        found = self._compiled.get(step.op)
        if isinstance(found, CompiledCudaLoop):
            return found.launches(operands, out, run.workspace, flag)
        if found is not None and step.attrs["length"]:
            return found.launches(operands, out, step.attrs, flag)
        # What an op's own `bind` comes down to may be in NumPy's words alone.
        return [(partial(step.op.forward, run, *operands, out=out, **step.attrs), ())]


class CudaPlans:
    """Makes binders of plans, for `ExecutionTiers`."""

    #: what may take part in a loop, as it is planned
    threads = 1
    has_microkernels = False
    splits_sums = True
    #: binds plans of which nothing is compiled
    without: Binder = CudaBinder({})

    def __init__(self, kernels: CudaKernels) -> None:
        self._kernels = kernels

    @property
    def compiled(self) -> int:
        """Kernels that were compiled so far."""
        return self._kernels.compiled

    def compile(
        self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()
    ) -> Binder | None:
        """What binds all steps of a plan; None where `stop` came true in between. Raises KernelUnavailable."""
        compiled = self._kernels.compile(plan, stop, first)
        return None if compiled is None else CudaBinder(compiled)
