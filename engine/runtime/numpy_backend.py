"""The CPU executor: NumPy, and machine code for fused kernels, microkernels and recurrences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from engine.codegen.kernels.blocks import bind_blocks
from engine.codegen.kernels.compiled import (
    LANES,
    NativeKernel,
    bind_within_range,
    block_count,
    kernel_workspace,
    native_kernel,
    native_workspace,
    part_sum_kernel,
)
from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import FusedKernel, lanes_of
from engine.codegen.kernels.recurrence import recurrence_text
from engine.codegen.microkernels.recipe import bind_recipe
from engine.codegen.native.machine_code import (
    KernelStore,
    KernelUnavailable,
    RefusedKernels,
    kernel_key,
    machine_code,
    target,
)
from engine.codegen.native.native_call import (
    IS_SUPPORTED,
    LoadedKernel,
    Otherwise,
    Runner,
    fallback,
    load_kernel,
    shared_runner,
)
from engine.compiler.body_plans import CompiledOp, kernel_ops
from engine.compiler.control_flow import PlannedScan, RunsPlans
from engine.compiler.fused_kernel import Fused, MicrokernelOp
from engine.compiler.plan import Plan, Step
from engine.ir.op import Array, Kernel, KernelCall, Namespace
from engine.ir.run_context import ALIGNMENT, NO_DEADLINE, Deadline, RunContext
from engine.ir.tensor_type import TensorType
from engine.runtime.binding import Binder, StepKernel, bind_step
from engine.runtime.interpreter import Buffer, Executor, ExecutorSettings, InstancePool
from engine.runtime.native_loops import bind_loop, loop_workspaces
from engine.runtime.prepared_plan import PreparedPlan
from engine.runtime.tiers import Compiling, Determinism, ExecutionTiers

#: maximum elements per step of a loop in one kernel; with more, dependent vector operations take longer than calls
MOST_AT_ONCE: Final = 128


class CompiledKernel(NamedTuple):
    """A kernel, its fused kernel with functions expanded to arithmetic, and kernels that add up partial sums."""

    kernel: NativeKernel
    fused: FusedKernel
    sums: Mapping[str, NativeKernel]


KernelCode = CompiledKernel | StepKernel | Sequence[LoadedKernel]
K = TypeVar("K", NativeKernel, LoadedKernel)


class Kernels:
    """Compiler of fused kernels and microkernels, with a cache of loaded ones and a store of machine code.

    Threads may share it. A kernel that could not be made is not tried again, so that a plan always runs the same way.
    """

    has_microkernels: ClassVar[bool] = True
    #: False, because a launch on a CPU is just a call, and split sums would round differently
    few_launches: ClassVar[bool] = False

    def __init__(self, store: KernelStore | None = None, threads: int = 1) -> None:
        self.threads = threads
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._refused = RefusedKernels()
        #: numbers of kernels that were compiled or loaded, and that were compiled
        self.loaded_count = 0
        self.compiled = 0
        #: binder without kernels, which runs fused nodes with NumPy, block by block
        self.uncompiled_binder = KernelBinder({}, threads)

    def has_recipes(self, plan: Plan) -> bool:
        """Return False: microkernels are steps of their own."""
        return False

    def compile(
        self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()
    ) -> KernelBinder | None:
        """Return the binder of a plan with kernels that fit in the planned memory, or None if `stop` becomes true.

        Kernels of the ops `first` are compiled first, in order. A kernel over few rows may need more workspace than was
        planned; then NumPy runs the step. Kernels use all threads, or one if the total workspace would exceed the plan.
        Raises KernelUnavailable: either all kernels of a plan are used, or none.
        """
        all_ops = {op: op for op in kernel_ops(plan, _is_one_kernel)}
        ops = list(dict.fromkeys([*(all_ops[op] for op in first if op in all_ops), *all_ops]))
        # Which ops get kernels is decided for one thread, so that results do not depend on the number of threads.
        planned = max((_planned_workspace(op, 1) for op in ops), default=0)
        codes: dict[Kernel, KernelCode] = {}
        for op in ops:
            if stop():
                return None
            if _needed_workspace(op) <= planned:
                codes[op] = self._code(op)
        runner, planned_for_threads = shared_runner(self._store), max(map(_planned_workspace, ops), default=0)
        binder = KernelBinder(codes, self.threads, runner)
        if max(map(binder.workspace, plan.steps), default=0) > planned_for_threads:
            binder = KernelBinder(codes, 1, runner)
        binder.fit_loops(plan)
        return binder

    def _code(self, op: CompiledOp) -> KernelCode:
        if isinstance(op, Fused):
            fused = op.expanded
            kernel = self._fused_kernel(fused, lanes_of(fused, op.iteration_space.columns))
            sums = {kind: self._fused_kernel(part_sum_kernel(fused.dtype, kind), LANES) for kind in sum_kinds(op)}
            return CompiledKernel(kernel, fused, sums)
        if isinstance(op, PlannedScan):
            assert op.step_loop is not None
            recurrence = op.step_loop.expanded
            text = recurrence_text(recurrence, lanes_of(recurrence.fused, op.step_loop.space.columns))
            return StepKernel(self._kernel(text, load_kernel), recurrence)
        return [self._kernel(phase.text, load_kernel) for phase in op.recipe.phases]

    def _fused_kernel(self, fused: FusedKernel, lanes: int) -> NativeKernel:
        return self._kernel(llvm_text(fused, lanes), partial(native_kernel, fused, lanes))

    def _kernel(self, text: str, load: Callable[[bytes], K]) -> K:
        """Return the kernel with this text: a loaded one, a stored one, or a new one."""
        key = kernel_key(text, **target())
        kernel: K | None = self._loaded.get(key)
        if kernel is None:
            kernel = self._loaded[key] = self._load_or_compile(key, text, load)
            self.loaded_count += 1
        return kernel

    def _load_or_compile(self, key: str, text: str, load: Callable[[bytes], K]) -> K:
        self._refused.require(key)
        try:
            kernel = self._load_stored(key, load)
            if kernel is None:
                code = machine_code(text)
                self.compiled += 1
                kernel = load(code)
                self._store.put(key, code)
        except KernelUnavailable as error:
            self._refused.add(key, str(error))
            raise
        return kernel

    def _load_stored(self, key: str, load: Callable[[bytes], K]) -> K | None:
        """Load a kernel from the store; return None if it is not there or cannot be loaded."""
        code = self._store.get(key)
        try:
            return None if code is None else load(code)
        except KernelUnavailable:
            return None


def _is_one_kernel(scan: PlannedScan) -> bool:
    """Whether one kernel runs all steps of a scan, because its steps are small."""
    return IS_SUPPORTED and scan.step_loop is not None and scan.step_loop.elements <= MOST_AT_ONCE


def _inner_first(plan: Plan, seen: set[Plan]) -> Iterator[Plan]:
    """Yield a plan and the plans that its loops run, each once, innermost first."""
    if plan not in seen:
        seen.add(plan)
        for step in plan.steps:
            for body in step.op.runs:
                yield from _inner_first(body, seen)
        yield plan


def _planned_workspace(op: CompiledOp, threads: int | None = None) -> int:
    """Return the planned workspace of a kernel for `threads` threads, by default those of the plan."""
    if isinstance(op, PlannedScan):
        return 0
    workspace = op.workspace_for if isinstance(op, Fused) else op.recipe.workspace
    return workspace(op.threads if threads is None else threads)


def _needed_workspace(op: CompiledOp) -> int:
    """Return the workspace that a kernel needs with one thread."""
    if isinstance(op, PlannedScan):
        return 0
    return native_workspace(op.expanded, op.iteration_space, 1) if isinstance(op, Fused) else op.recipe.workspace(1)


class KernelBinder(Binder):
    """Binder of fused nodes and microkernels to compiled kernels. NumPy runs fused nodes without one, block by block.

    A kernel uses up to `threads` threads, and NumPy's blocks as many as the plan states. Other steps are bound to their
    ops' implementations.
    """

    def __init__(self, compiled: Mapping[Kernel, KernelCode], threads: int, runner: Runner | None = None) -> None:
        self.compiled = compiled
        self.runner = runner
        self._threads = threads
        self._loop_workspaces: dict[Kernel, int] = {}
        #: binder of steps inside loops, which run in one thread; None if this is the one
        self._single_threaded = None if threads == 1 else KernelBinder(compiled, 1, runner)

    @property
    def has_kernels(self) -> bool:
        """Whether any step is bound to a kernel."""
        return bool(self.compiled)

    def has_kernel(self, step: Step) -> bool:
        """Whether the step has a compiled kernel."""
        return step.op in self.compiled

    def step_kernel(self, step: Step) -> StepKernel | None:
        """Return the kernel that runs all steps of a loop in one call, or None."""
        code = self.compiled.get(step.op)
        return code if isinstance(code, StepKernel) else None

    def workspace(self, step: Step) -> int:
        """Return the bytes of a kernel's workspace. NumPy allocates its own at each run."""
        if isinstance(step.op, RunsPlans):
            return (
                self._single_threaded.workspace(step)
                if self._single_threaded
                else self._loop_workspaces.get(step.op, 0)
            )
        code = self.compiled.get(step.op)
        if code is None:
            return 0
        if isinstance(step.op, MicrokernelOp):
            return step.op.recipe.workspace(self._threads_for(step.op))
        assert isinstance(step.op, Fused)
        assert isinstance(code, CompiledKernel)
        return kernel_workspace(code.kernel, code.fused, step.op.iteration_space, self._threads)

    def fit_loops(self, plan: Plan) -> None:
        """Decide which loops of a plan and of its bodies run as native calls, before any of them is bound."""
        if self._single_threaded is not None:
            self._single_threaded.fit_loops(plan)
            return
        # The workspace of a loop includes those of the loops in its body.
        for inner_plan in _inner_first(plan, set()):
            self._loop_workspaces.update(loop_workspaces(self, inner_plan))

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Bind a step to its kernel, to NumPy's blocks, to a native loop, or to its op's implementation."""
        op, code = step.op, self.compiled.get(step.op)
        if isinstance(op, MicrokernelOp) and code is not None and not isinstance(code, CompiledKernel | StepKernel):
            by_op = partial(_bind_one, run, step)
            return bind_recipe(code, op.recipe, operands, out, self._threads_for(op), run.workspace, by_op)
        if isinstance(op, RunsPlans):
            native = bind_loop(self._single_threaded or self, run, step, operands, out)
            return native or bind_step(run, step, operands, out)
        if not isinstance(op, Fused):
            return bind_step(run, step, operands, out)
        by_numpy = partial(bind_blocks, op.kernel, op.iteration_space, threads=op.threads)
        if not isinstance(code, CompiledKernel):  # bound at each run, to hold the blocks of one step at a time
            return [fallback(partial(_with_deadline_checks, run, by_numpy), operands, out)]
        kernel, fused, sums = code
        return bind_within_range(
            kernel, fused, op.iteration_space, operands, out, self._threads, by_numpy, run.workspace, sums
        )

    def _threads_for(self, op: MicrokernelOp) -> int:
        return min(self._threads, op.threads)


def _bind_one(run: RunContext, step: Step, operands: Sequence[Array], results: Sequence[Array]) -> Sequence[KernelCall]:
    return bind_step(run, step, operands, results[0])


def _with_deadline_checks(
    run: RunContext, otherwise: Otherwise, operands: Sequence[Array], results: Sequence[Array]
) -> Sequence[KernelCall]:
    """Return the calls of `otherwise`, each preceded by a check of the deadline."""
    return [checked_call for call in otherwise(operands, results) for checked_call in ((run.deadline.check, ()), call)]


def sum_kinds(op: Fused) -> list[str]:
    """Return the kinds of results that are sums over several blocks."""
    kinds = {result.kind for result in op.expanded.results if result.adds_up}
    return sorted(kinds) if block_count(op.iteration_space) > 1 else []


class NumPyExecutor(Executor):
    """Executor on the CPU, in the calling thread.

    A plan is bound to memory of its own, which `instances` keeps for the next run if it is not too large. One kernel
    uses up to `threads` threads. With `compile` on, kernels are compiled as `determinism` says
    (`engine.runtime.tiers`), and cached in `store`.
    """

    device: ClassVar[str] = "cpu"
    position: ClassVar[int] = 1
    interprets_first_run: ClassVar[bool] = True

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
        # A plan that is compiled later is planned again. NumPy only runs it a few times, which is not worth waking
        # threads for that would compete with those of BLAS.
        self.kernel_threads = 1 if compile == "on" and determinism == "fast" else threads
        self.instances = InstancePool() if instances is None else instances
        self._kernels = Kernels(store, threads)
        self._uncompiled_binder = self._kernels.uncompiled_binder
        is_compiling = compile == "on"
        self._tiers = ExecutionTiers(self._kernels, determinism, self.instances.retire) if is_compiling else None

    @classmethod
    def open(cls, settings: ExecutorSettings) -> Self:
        """Open the executor with the settings that apply to a CPU."""
        instances = InstancePool(settings.instance_bytes)
        return cls(settings.threads, instances, settings.determinism, settings.store, compile=settings.compile)

    @property
    def kernels(self) -> int:
        """Number of fused kernels that were compiled or loaded."""
        return self._kernels.loaded_count

    @property
    def xp(self) -> Namespace:
        """NumPy."""
        return np

    def context(self, deadline: Deadline = NO_DEADLINE, workspace: Any = None) -> RunContext:
        """Create the context of a run, with this executor's threads."""
        context = super().context(deadline, workspace)
        context.threads = self.threads
        return context

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """Return `array` itself."""
        return np.asarray(array)

    def allocate(self, nbytes: int) -> Buffer:
        """Allocate aligned, uninitialised bytes."""
        raw = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + nbytes]

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """Place an array on a buffer."""
        return np.ndarray(type.shape, type.dtype, buffer, offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Return the arrays themselves."""
        return list(arrays)

    def bind(self, plan: Plan, binder: Binder) -> PreparedPlan:
        """Bind a plan to memory of its own."""
        return PreparedPlan(plan, self, binder)
