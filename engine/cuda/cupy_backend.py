"""GPU executor with CuPy, which is imported only when an executor is opened."""

from __future__ import annotations

import importlib.util
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np

from engine.codegen.native.machine_code import KernelStore, Reasons
from engine.compiler.plan import Plan
from engine.cuda.autotuning import CardRuns, CudaClock
from engine.cuda.binding import CardCalls, CudaBinder, CudaPlans
from engine.cuda.kernels import CudaKernels
from engine.cuda.prepared_plan import CudaPreparedPlan, KernelOutOfRange
from engine.cuda.transfers import NoPinnedMemory, PinnedMemory, PinnedMemoryFull, RegisteredMemory
from engine.ir.op import Array, Namespace
from engine.ir.run_context import NO_DEADLINE, Deadline
from engine.ir.run_report import UNCOMPILED
from engine.ir.tensor_type import HostArray, TensorType
from engine.runtime.binding import Binder
from engine.runtime.interpreter import (
    DEVICE_WORKSPACE,
    IDLE_SHARE,
    INSTANCE_BYTES,
    Buffer,
    Executor,
    ExecutorSettings,
    InstancePool,
    Observer,
    ReadyPlan,
)
from engine.runtime.tiers import Compiling, Determinism, ExecutionTiers

#: maximum share of a GPU's memory that is used: the rest is for its context and for libraries
LARGEST_SHARE: Final = 0.9
#: reciprocal of the workspace's maximum share of that memory
WORKSPACE_SHARE: Final = 4

_unpinned = Reasons("feeds and results are copied one by one: %s")


def is_available() -> bool:
    """Return whether CuPy is installed and finds a GPU."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy  # noqa: PLC0415 - optional

    return bool(cupy.is_available())


class CuPyExecutor(Executor):
    """Executor of plans with CuPy on the current device, on the calling thread's stream.

    A plan is bound to its own memory, which is kept for its next run, and its launches are recorded if its ops allow
    it. With `compile` on, kernels are compiled when `determinism` says so (engine.runtime.tiers) and stored in `store`.
    At most `device_bytes` of GPU memory are used, by default LARGEST_SHARE of it. `device_workspace` bytes of these,
    but at most 1 / WORKSPACE_SHARE, are the workspace that kernels and libraries use one after the other. Pinned host
    memory for transfers takes at most `pinned_bytes`.
    """

    device: ClassVar[str] = "cuda"
    position: ClassVar[int] = 0
    kernel_threads = 1

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
        """Open the current GPU. Raises RuntimeError if none is usable, or if it has no room for the workspace."""
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
        nbytes = min(device_workspace, limit // WORKSPACE_SHARE)
        try:
            self._workspace: Array = cupy.empty(nbytes, "uint8")
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise RuntimeError(f"the GPU has no room for a workspace of {nbytes} bytes: {error}") from None
        self._runs = CardRuns()
        self._clock = CudaClock(cupy, self._runs)
        chooses, bitwise = determinism == "fast" and compile == "on", determinism == "bitwise"
        cards = CardCalls(cupy, self._workspace, store, self._clock if chooses else None, deterministic=bitwise)
        plans = CudaPlans(self._kernels, cards)
        self._uncompiled_binder = plans.uncompiled_binder
        self._tiers = ExecutionTiers(plans, determinism, self.instances.retire) if compile == "on" else None
        self.splits_sums = plans.few_launches and self._tiers is not None

    @classmethod
    def is_available(cls) -> bool:
        """Return whether CuPy is installed and finds a GPU."""
        return is_available()

    @classmethod
    def open(cls, settings: ExecutorSettings) -> Self:
        """Open an executor with the settings for a GPU. Raises RuntimeError if there is no usable GPU."""
        sizes, pinned = (settings.device_bytes, settings.device_workspace), settings.instance_bytes
        return cls(settings.determinism, settings.store, *sizes, compile=settings.compile, pinned_bytes=pinned)

    @property
    def kernels(self) -> int:
        """Number of kernels that were compiled or loaded."""
        return self._kernels.loaded_count

    @property
    def device_bytes(self) -> int:
        """Bytes of CuPy's pool, in use or free."""
        return int(self._cupy.get_default_memory_pool().total_bytes())

    @property
    def xp(self) -> Namespace:
        """The array module, CuPy."""
        return self._cupy

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy an array to the GPU; as one axis, since a 0-d copy loses the sign of -0.0."""
        return self._cupy.asarray(np.ravel(array)).reshape(array.shape)

    def allocate(self, nbytes: int) -> Buffer:
        """Allocate from CuPy's pool, which aligns to 512 bytes."""
        return self._cupy.cuda.alloc(nbytes)

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """Return an array on a buffer."""
        return self._cupy.ndarray(type.shape, type.dtype, buffer + offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Copy arrays to the host. Synchronize the stream first, so that a failed kernel is reported here."""
        self._cupy.cuda.get_current_stream().synchronize()
        return [self._cupy.asnumpy(a) for a in arrays]

    def run(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, np.ndarray[Any, Any]],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[np.ndarray[Any, Any]]:
        """Run a plan. Transfers of small feeds and results are recorded with it: one launch, and one synchronization.

        If GPU memory is full, or all pinned memory is in use, idle plans are dropped first. Raises MemoryError.
        """
        try:
            return self._run_exchanging(plan, feeds, deadline, watch)
        except (self._cupy.cuda.memory.OutOfMemoryError, PinnedMemoryFull):
            self.free()
        try:
            return self._run_exchanging(plan, feeds, deadline, watch)
        except PinnedMemoryFull:  # other running plans hold it
            return super().run(plan, feeds, deadline, watch)

    def _run_exchanging(
        self, plan: Plan, feeds: Mapping[Hashable, HostArray], deadline: Deadline, watch: Observer | None
    ) -> list[HostArray]:
        if watch is not None:
            return super().run(plan, feeds, deadline, watch)
        try:
            arrays = {
                feed: x if isinstance(x := feeds[feed], self._cupy.ndarray) else np.asarray(x)
                for feed in plan.feeds
                if feed in feeds
            }
            return self._run_tier(plan, arrays, deadline, self._run_from_host)
        except NoPinnedMemory as error:
            _unpinned.log(str(error))
            return super().run(plan, feeds, deadline)
        except KernelOutOfRange:
            return super().run(plan, feeds, deadline, _ignore_step)

    def _run_from_host(
        self, ready: ReadyPlan, feeds: Mapping[Hashable, HostArray | Array], deadline: Deadline
    ) -> list[HostArray]:
        assert isinstance(ready, CudaPreparedPlan)
        return ready.run_from_host(feeds, partial(self._registered.copy_to_gpu, fallback=self.to_device), deadline)

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """Launch the recorded plan. With an observer, or after KernelOutOfRange, run it step by step."""
        try:
            return super().execute(plan, feeds, deadline, watch)
        except KernelOutOfRange:
            deadline.begin_run(UNCOMPILED, reads_float32=plan.reads_float32)
            return self.interpret(plan, feeds, deadline)

    def _run_prepared(self, *args: Any) -> list[Array]:
        with self._runs:
            return super()._run_prepared(*args)

    def interpret(self, *args: Any, **kwargs: Any) -> list[Array]:
        """Run a plan step by step, counted as a run on the GPU."""
        with self._runs:
            return super().interpret(*args, **kwargs)

    def bind(self, plan: Plan, binder: Binder) -> CudaPreparedPlan:
        """Prepare a plan: give it its own memory, and bind launches that will be recorded."""
        assert isinstance(binder, CudaBinder)
        return CudaPreparedPlan(plan, self, binder, self._workspace, self._pinned)

    def free(self) -> None:
        """Free unused memory."""
        self.instances.clear()
        self._clock.await_memory()
        self._cupy.get_default_memory_pool().free_all_blocks()


def _ignore_step(*_: object) -> None:
    """Observe nothing. Passing an observer makes a plan run step by step."""
