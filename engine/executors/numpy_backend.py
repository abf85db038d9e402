"""The CPU executor: NumPy, and machine code for fused kernels, microkernels and recurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from engine.executors.binding import Binder
from engine.executors.instance_pool import InstancePool
from engine.executors.interpreter import Buffer, Executor, ExecutorSettings
from engine.executors.kernels import Kernels
from engine.executors.prepared_plan import PreparedPlan
from engine.executors.tiers import Compiling, Determinism, ExecutionTiers
from engine.graph.alignment import ALIGNMENT
from engine.graph.limits import NO_DEADLINE, Deadline
from engine.graph.op import Array, Namespace
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import TensorType
from engine.native.kernel_store import KernelStore
from engine.planning.plan import Plan


class NumPyExecutor(Executor):
    """Executor of plans with NumPy, in the calling thread.

    A plan is bound to memory of its own, which `instances` keep for its next run where it is not too large. `threads`
    are what one kernel may use. With `compile` on, loops are compiled, when `determinism` says
    (engine.executors.tiers), and what is compiled is kept in `store`.
    """

    device: ClassVar[str] = "cpu"
    position: ClassVar[int] = 1
    begins_unbound: ClassVar[bool] = True

    def __init__(
        self,
        threads: int = 1,
        instances: InstancePool | None = None,
        determinism: Determinism = "fast",
        store: KernelStore | None = None,
        *,
        compile: Compiling = "off",
    ) -> None:
        self.threads = threads
        # What is compiled by and by is planned anew; NumPy runs it a few times, for which other threads are not worth
        # waking, while those of BLAS still look for work.
        self.loop_threads = 1 if compile == "on" and determinism == "fast" else threads
        self.instances = InstancePool() if instances is None else instances
        self._kernels = Kernels(store, threads)
        self._without = self._kernels.without
        is_compiling = compile == "on"
        self._tiers = ExecutionTiers(self._kernels, determinism, self.instances.retire) if is_compiling else None

    @classmethod
    def opened(cls, settings: ExecutorSettings) -> Self:
        """With all that is for a processor."""
        instances = InstancePool(settings.instance_bytes)
        return cls(settings.threads, instances, settings.determinism, settings.store, compile=settings.compile)

    @property
    def kernels(self) -> int:
        """Those of loops."""
        return self._kernels.made

    @property
    def xp(self) -> Namespace:
        """The module numpy."""
        return np

    def context(self, deadline: Deadline = NO_DEADLINE, workspace: Any = None) -> RunContext:
        """Context of runs here, with its threads."""
        context = super().context(deadline, workspace)
        context.threads = self.threads
        return context

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """`array` itself."""
        return np.asarray(array)

    def allocate(self, nbytes: int) -> Buffer:
        """Bytes that nothing was written to."""
        raw = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + nbytes]

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """An array on those bytes."""
        return np.ndarray(type.shape, type.dtype, buffer, offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """The arrays themselves."""
        return list(arrays)

    def bind(self, plan: Plan, binder: Binder) -> PreparedPlan:
        """Prebound calls."""
        return PreparedPlan(plan, self, binder)
