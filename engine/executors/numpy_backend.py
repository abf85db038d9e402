"""The CPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.executors.bound import Bound
from engine.executors.interpreter import Buffer, Executor, Observer
from engine.executors.kernels import Kernels
from engine.executors.leases import Leases
from engine.executors.tiers import Determinism, Tier, Tiers
from engine.graph.alignment import ALIGNMENT
from engine.graph.limits import NO_DEADLINE, Deadline
from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import TensorType
from engine.loops.kernel_store import KernelStore
from engine.planning.plan import Plan


class NumPyExecutor(Executor):
    """Runs plans with NumPy, in the calling thread.

    A plan is bound to memory of its own, which `leases` keep for its next run where they have room for it. `threads`
    are what one kernel may use. With `determinism` given, loops are compiled (engine.executors.tiers), and what is
    compiled is kept in `store`.
    """

    device: ClassVar[str] = "cpu"

    def __init__(
        self,
        threads: int = 1,
        leases: Leases | None = None,
        determinism: Determinism | None = None,
        store: KernelStore | None = None,
    ) -> None:
        self.threads = threads
        # What is compiled by and by is planned anew; NumPy runs it a few times, for which other threads are not worth
        # waking, while those of BLAS still look for work.
        self.loop_threads = 1 if determinism == "fast" else threads
        self.leases = Leases() if leases is None else leases
        self._kernels = Kernels(store, threads)
        self._tiers = Tiers(self._kernels, determinism, self.leases.retire) if determinism else None

    @property
    def kernels(self) -> int:
        """Those of loops."""
        return self._kernels.made

    @property
    def xp(self) -> Namespace:
        """The module numpy."""
        return np

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """`array` itself where it is contiguous."""
        return np.asarray(array, order="C")

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

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """By prebound calls, which are kept where `leases` have room for them; step by step where somebody looks on."""
        if watch is not None:
            return self.interpret(plan, feeds, deadline, watch)
        if self._tiers is None:
            return self._run(Tier(plan, self._kernels.without), feeds, deadline)
        tier = self._tiers.current(plan)
        results = self._run(tier, feeds, deadline)
        if tier.plan is plan:
            self._tiers.ran(plan)
        return results

    def _run(self, tier: Tier, feeds: Mapping[Hashable, Array], deadline: Deadline) -> list[Array]:
        plan, binder = tier
        bound = self.leases.take(plan) or Bound(plan, self, binder)
        try:
            return bound.run(feeds, deadline)
        finally:
            self.leases.give(plan, bound)

    def settle(self) -> None:
        """Wait until nothing is being compiled."""
        if self._tiers is not None:
            self._tiers.settle()

    def close(self, timeout: float | None = None) -> bool:
        """Compile nothing more, and wait for the kernel that is being compiled."""
        return self._tiers is None or self._tiers.close(timeout)
