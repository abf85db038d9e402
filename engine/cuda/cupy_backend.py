"""The GPU executor, with CuPy, which is imported when an executor is opened, never before."""

from __future__ import annotations

import importlib.util
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np

from engine.codegen.native.kernel_errors import Reasons
from engine.codegen.native.kernel_store import KernelStore
from engine.compiler.plan import Plan
from engine.cuda.autotuning import CardRuns, CudaClock
from engine.cuda.binding import CardCalls, CudaBinder, CudaPlans
from engine.cuda.kernels import CudaKernels
from engine.cuda.prepared_plan import CudaPreparedPlan, KernelOutOfRange
from engine.cuda.transfers import NoPinnedMemory, PinnedMemory, PinnedMemoryFull, RegisteredMemory
from engine.ir.limits import NO_DEADLINE, Deadline
from engine.ir.op import Array, Namespace
from engine.ir.run_report import UNCOMPILED
from engine.ir.tensor_type import HostArray, TensorType
from engine.runtime.binding import Binder
from engine.runtime.instance_pool import IDLE_SHARE, INSTANCE_BYTES, InstancePool, ReadyPlan
from engine.runtime.interpreter import DEVICE_WORKSPACE, Buffer, Executor, ExecutorSettings, Observer
from engine.runtime.tiers import Compiling, Determinism, ExecutionTiers

#: of the memory of a card, what is taken at most: the rest is for its context, and for libraries
LARGEST_SHARE: Final = 0.9
#: of what is taken, the workspace is at most one part in so many
WORKSPACE_SHARE: Final = 4

_unpinned = Reasons("feeds and results are copied one by one: %s")


def is_available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy  # noqa: PLC0415 - optional

    return bool(cupy.is_available())


class CuPyExecutor(Executor):
    """Executor of plans with CuPy on the current device, on the calling thread's stream.

    A plan is bound to memory of its own, which is kept for its next run, and what it launches is recorded, where its
    ops can be. With `compile` on, loops are compiled, when `determinism` says (engine.runtime.tiers), and what is
    compiled is kept in `store`. Of the memory of the card, at most `device_bytes` are taken, by default LARGEST_SHARE
    of it. Of these, `device_workspace` are what kernels and libraries work in, one after the other, but no more than
    one part in WORKSPACE_SHARE. Of the host's memory, what plans carry to and fro takes at most `pinned_bytes`.
    """

    device: ClassVar[str] = "cuda"
    position: ClassVar[int] = 0
    loop_threads = 1

    def __init__(
        self,
        determinism: Determinism = "fast",
        store: KernelStore | None = None,
        device_bytes: int | None = None,
        device_workspace: int = DEVICE_WORKSPACE,
        *,
        compile: Compiling = "off",
        pinned_bytes: int = INSTANCE_BYTES,
    ) -> None:
        """Raises RuntimeError when there is no usable GPU."""
        if not is_available():
            raise RuntimeError("no GPU can be used: CuPy is not installed, or finds no device")
        import cupy  # noqa: PLC0415 - optional

        self._cupy = cupy
        self.device = f"cuda:{cupy.cuda.Device().id}"  # type: ignore[misc]
        limit = device_bytes or int(LARGEST_SHARE * cupy.cuda.Device().mem_info[1])
        cupy.get_default_memory_pool().set_limit(size=limit)
        self.instances = InstancePool(limit // IDLE_SHARE)
        self._pinned, self._registered = PinnedMemory(cupy, pinned_bytes), RegisteredMemory(cupy)
        self._kernels = CudaKernels(cupy, store)
        self._workspace = self._work_in(min(device_workspace, limit // WORKSPACE_SHARE))
        self._runs = CardRuns()
        self._clock = CudaClock(cupy, self._runs)
        chooses, bitwise = determinism == "fast" and compile == "on", determinism == "bitwise"
        cards = CardCalls(cupy, self._workspace, store, self._clock if chooses else None, deterministic=bitwise)
        plans = CudaPlans(self._kernels, cards)
        self._without = plans.without
        self._tiers = ExecutionTiers(plans, determinism, self.instances.retire) if compile == "on" else None
        self.splits_sums = plans.few_launches and self._tiers is not None

    def _work_in(self, nbytes: int) -> Array:
        """Memory of the card for as long as this lives. Raises RuntimeError."""
        try:
            return self._cupy.empty(nbytes, "uint8")
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise RuntimeError(f"the GPU has no room for a workspace of {nbytes} bytes: {error}") from None

    @classmethod
    def is_available(cls) -> bool:
        """Whether CuPy is installed and finds a GPU."""
        return is_available()

    @classmethod
    def opened(cls, settings: ExecutorSettings) -> Self:
        """With all that is for a card. Raises RuntimeError when there is no usable GPU."""
        sizes = settings.device_bytes, settings.device_workspace
        bytes = settings.instance_bytes
        return cls(settings.determinism, settings.store, *sizes, compile=settings.compile, pinned_bytes=bytes)

    @property
    def kernels(self) -> int:
        """Those of loops."""
        return self._kernels.made

    @property
    def device_bytes(self) -> int:
        """Those of CuPy's pool, in use or not."""
        return int(self._cupy.get_default_memory_pool().total_bytes())

    @property
    def xp(self) -> Namespace:
        """The module cupy."""
        return self._cupy

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """A copy on the GPU; as one axis, since a 0-d copy loses the sign of -0.0."""
        return self._cupy.asarray(np.ravel(array)).reshape(array.shape)

    def allocate(self, nbytes: int) -> Buffer:
        """Memory of CuPy's pool, which aligns to 512 bytes."""
        return self._cupy.cuda.alloc(nbytes)

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """An array on that memory."""
        return self._cupy.ndarray(type.shape, type.dtype, buffer + offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Copies on the host; waits for the stream, so that a failed kernel is noticed here and not later."""
        self._cupy.cuda.get_current_stream().synchronize()
        return [self._cupy.asnumpy(a) for a in arrays]

    def run(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, np.ndarray[Any, Any]],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[np.ndarray[Any, Any]]:
        """As its parent, with what is small carried within what is recorded: one launch, and one wait.

        Where the card's memory is full, or all is pinned that may be, plans that are ready free some first. Raises
        MemoryError.
        """
        try:
            return self._run_exchanging(plan, feeds, deadline, watch)
        except (self._cupy.cuda.memory.OutOfMemoryError, PinnedMemoryFull):
            self.free()
        try:
            return self._run_exchanging(plan, feeds, deadline, watch)
        except PinnedMemoryFull:  # by what runs just now
            return super().run(plan, feeds, deadline, watch)

    def _run_exchanging(
        self, plan: Plan, feeds: Mapping[Hashable, HostArray], deadline: Deadline, watch: Observer | None
    ) -> list[HostArray]:
        if watch is not None:
            return super().run(plan, feeds, deadline, watch)
        try:
            given = {
                feed: x if isinstance(x := feeds[feed], self._cupy.ndarray) else np.asarray(x)
                for feed in plan.feeds
                if feed in feeds
            }
            return self._run_tier(plan, given, deadline, self._run_from_host)
        except NoPinnedMemory as error:
            _unpinned.tell(str(error))
            return super().run(plan, feeds, deadline)
        except KernelOutOfRange:
            return super().run(plan, feeds, deadline, _look_away)

    def _run_from_host(
        self, ready: ReadyPlan, feeds: Mapping[Hashable, HostArray | Array], deadline: Deadline
    ) -> list[HostArray]:
        assert isinstance(ready, CudaPreparedPlan)
        return ready.run_from_host(feeds, partial(self._registered.copied, otherwise=self.to_device), deadline)

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """By what was recorded; step by step where somebody looks on, or a loop has met what its kernel cannot do."""
        try:
            return super().execute(plan, feeds, deadline, watch)
        except KernelOutOfRange:
            deadline.ran(UNCOMPILED)
            return self.interpret(plan, feeds, deadline)

    def _run_prepared(self, *args: Any) -> list[Array]:
        with self._runs:
            return super()._run_prepared(*args)

    def interpret(self, *args: Any, **kwargs: Any) -> list[Array]:
        """As its parent."""
        with self._runs:
            return super().interpret(*args, **kwargs)

    def bind(self, plan: Plan, binder: Binder) -> CudaPreparedPlan:
        """Launches, to be recorded."""
        assert isinstance(binder, CudaBinder)
        return CudaPreparedPlan(plan, self, binder, self._workspace, self._pinned)

    def free(self) -> None:
        """Give back what nothing uses just now."""
        self.instances.clear()
        self._clock.await_memory()
        self._cupy.get_default_memory_pool().free_all_blocks()


def _look_away(*_: object) -> None:
    """See nothing: what somebody looks at runs step by step."""
