"""Execution tiers: NumPy runs a plan at first, and compiled kernels run it once it has proved worth compiling.

Compiling takes longer than most runs, and many graphs are run only once. So a plan that has run twice, or once if it is
large, is handed to the background compiler: one thread with a bounded queue, in which owners take turns. When its
kernels are ready, a plan with fused kernels replaces it:

    run 1    interpreted, with each step timed                                UNCOMPILED
    run 2    prepared, still with NumPy; then compilation is queued           UNCOMPILED
    run 3    if there are many kernels, those that save most time run first   PARTLY_COMPILED
    run 4    all kernels                                                      COMPILED

A kernel may round differently than NumPy, so results may change by their last bits once or twice. With determinism
`bitwise`, there is only one tier: the kernels that the plan already has, of large tensors and in bodies of loops, are
compiled before the first run, and nothing changes after that.

Three rules deviate from this. A plan whose loops would run longer than compiling takes waits for its kernels. If a
plan's kernels have crashed a process, the plan is condemned by its digest, and runs with NumPy from then on. If
compiling fails, the plan stays with NumPy, and the reason is logged once.

States of plans are kept in a weak dictionary by identity, so that compiled plans are dropped together with the plans
that they replace.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition, Lock, Thread, current_thread
from typing import Final, Literal, NamedTuple, Protocol

from engine.codegen.native.machine_code import KernelUnavailable, Reasons
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.control_flow import RunsPlans, has_long_loops
from engine.compiler.fit_memory import Compilable, compiled_within
from engine.compiler.fused_kernel import compile_order, first_parts
from engine.compiler.plan import Plan, graph_of, make_plan, with_identity_of
from engine.ir.fairness import Turns, charge_to, current_owner
from engine.ir.op import Kernel
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline
from engine.ir.run_report import COMPILED, PARTLY_COMPILED, UNCOMPILED, RunTier
from engine.ops import registry
from engine.runtime.binding import Binder
from engine.runtime.crash_record import crash_record

#: maximum queued jobs; further ones are rejected, and may be submitted again later
MOST_WAITING: Final = 256
#: maximum keys of failed jobs to remember
MOST_FAILED: Final = 4096
#: FLOPs from which a plan is compiled after its first run
LARGE: Final = 10_000_000
#: seconds between two checks of the deadline while a run waits for kernels
_DEADLINE_CHECK_SECONDS: Final = 0.05

_logger = logging.getLogger("gradserve.kernels")

CompileJob = Callable[[], object]
Determinism = Literal["fast", "bitwise"]
Compiling = Literal["on", "off"]


class _Job(NamedTuple):
    """A queued job, and a callback for the case that it is dropped."""

    key: Hashable
    job: CompileJob
    on_drop: CompileJob


class BackgroundCompiler:
    """Background thread that runs compile jobs one after the other. It starts with the first job.

    Owners take turns, weighted by the time that their jobs take. Jobs of one owner run in order. If the queue is full,
    the owner with the most jobs loses the last one.

    A job has a key. A job that is queued, running or has failed is not accepted again; one that has succeeded is,
    because its kernels may have been evicted since. If a job raises, one line is logged with the reason. Jobs submitted
    by a job belong to its owner.

    The thread never outlives the interpreter, and is never stopped inside a compiler. `close`, garbage collection of
    this object and the end of the process wait for the running job, and drop queued ones.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._queue = _Queue(most_waiting)
        # At the end of a process, finalizers run before daemon threads are killed.
        self._finalizer = weakref.finalize(self, _Queue.close, self._queue)

    def submit(self, key: Hashable, job: CompileJob, on_drop: CompileJob = lambda: None) -> bool:
        """Queue a job. Return False if its key is known, the queue is full, or this is closed.

        `on_drop` is called if the job was accepted, and dropped later in favour of another owner's.
        """
        return self._queue.add(current_owner(), _Job(key, job, on_drop))

    @property
    def closing(self) -> bool:
        """Whether this is closed. A job with several kernels checks it between them."""
        return self._queue.closing

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until no job is queued or running; return False after `timeout` seconds. A job must not call this."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(queue.is_idle, timeout)

    def wait_for(self, key: Hashable, timeout: float) -> bool:
        """Wait until no job with this key is queued or running; return False after `timeout` seconds."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(lambda: not queue.has(key), timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Accept no more jobs, drop queued ones, and wait for the running one.

        Return False if that took longer than `timeout` seconds. Then the process should end by `os._exit`, which does
        not wait for the compiler.
        """
        self._finalizer.detach()
        return self._queue.close(timeout)


class _Queue:
    """State shared by the thread and callers.

    It does not refer to the `BackgroundCompiler`, so that this can be garbage-collected while the thread waits.
    """

    def __init__(self, most_waiting: int) -> None:
        self.closing = False
        self._most_waiting = most_waiting
        self._jobs: Turns[_Job] = Turns()
        self._queued_keys: set[Hashable] = set()  # keys of queued jobs
        self._running: set[Hashable] = set()  # at most one key
        self._failed: OrderedDict[Hashable, str] = OrderedDict()
        self._thread: Thread | None = None
        self.changed = Condition()

    def add(self, owner: Hashable, job: _Job) -> bool:
        with self.changed:
            is_known = job.key in self._queued_keys or job.key in self._running or job.key in self._failed
            if is_known or self.closing or not self._has_thread():
                return False
            if self._jobs.count >= self._most_waiting and not self._displace(owner):
                return False
            self._jobs.put(owner, job)
            self._queued_keys.add(job.key)
            self.changed.notify_all()
            return True

    def _displace(self, owner: Hashable) -> bool:
        """Drop a job of the owner with the most jobs, unless `owner` would then have as many.

        Return whether a job was dropped.
        """
        largest_owner = self._jobs.longest_queue() if self._jobs.count else owner
        if self._jobs.count_of(largest_owner) <= self._jobs.count_of(owner) + 1:
            return False
        last = self._jobs.drop_last(largest_owner)
        self._queued_keys.discard(last.key)
        last.on_drop()
        return True

    def has(self, key: Hashable) -> bool:
        return key in self._queued_keys or key in self._running

    def is_idle(self) -> bool:
        return not self._jobs.count and not self._running

    def close(self, timeout: float | None = None) -> bool:
        with self.changed:
            self.closing = True
            dropped = self._jobs.clear()
            self.changed.notify_all()
            thread = self._thread
        dropped.clear()  # outside the lock: finalizers of the jobs' objects may submit jobs
        if thread is None or thread is current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _has_thread(self) -> bool:
        """Start the thread if it is not running, as after a fork. Return whether it is running."""
        if self._thread is None or not self._thread.is_alive():
            thread = Thread(target=self._serve, name="kernels", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # too many threads, or the interpreter is shutting down
                return False
            self._thread = thread
        return True

    def _serve(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Wait for a job and run it; return False when closed. Keep no reference to a job while waiting."""
        with self.changed:
            self.changed.wait_for(lambda: self._jobs.count or self.closing)
            if self.closing:
                return False
            owner = self._jobs.first()
            key, job, _ = self._jobs.take_next(owner)
            self._queued_keys.discard(key)
            self._running.add(key)
        started = time.perf_counter()
        charge_to(owner)
        try:
            self._attempt(key, job)
        finally:
            with self.changed:
                self._jobs.charge(owner, time.perf_counter() - started)
                self._running.discard(key)
                self.changed.notify_all()
        return True

    def _attempt(self, key: Hashable, job: CompileJob) -> None:
        try:
            job()
        except KernelUnavailable as error:
            self._record_failure(key, str(error))
        except Exception as error:  # a bug here or in the compiler must not fail requests
            _logger.debug("the job of a kernel failed", exc_info=True)
            self._record_failure(key, f"{type(error).__name__}: {error}")

    def _record_failure(self, key: Hashable, reason: str) -> None:
        """Remember a failure, and log it unless the same reason has been logged."""
        is_new = reason not in self._failed.values()
        with self.changed:
            self._failed[key] = reason
            if len(self._failed) > MOST_FAILED:
                self._failed.popitem(last=False)
        if is_new:
            _logger.warning("a kernel was not compiled, and NumPy computes it: %s", reason)


class KernelProperties(Protocol):
    """Properties of a device's kernels that plans depend on."""

    @property
    def threads(self) -> int:
        """Number of threads of a fused kernel."""

    @property
    def has_microkernels(self) -> bool:
        """Whether there are microkernels, which run single ops of certain shapes."""

    @property
    def few_launches(self) -> bool:
        """Whether plans should have few steps, since each step costs a launch."""


class KernelMaker(KernelProperties, Protocol):
    """Compiler of plans' kernels for one device, such as `engine.runtime.numpy_backend.Kernels`."""

    @property
    def compiled(self) -> int:
        """Number of kernels compiled so far, without those loaded from the store."""

    def has_recipes(self, plan: Plan) -> bool:
        """Whether a plan has steps other than fused nodes and microkernels that have compiled kernels."""

    @property
    def uncompiled_binder(self) -> Binder:
        """Binder of plans without compiled kernels."""

    def compile(self, plan: Plan, stop: Callable[[], bool] = ..., first: Iterable[Kernel] = ...) -> Binder | None:
        """Return the binder of a plan with its kernels, compiling those of the ops `first` before the others.

        Return None if `stop` becomes true. Raises KernelUnavailable.
        """


class ExecutionTier(NamedTuple):
    """The plan that runs, which is the original or its replacement, its binder, and how much of it is compiled."""

    plan: Plan
    binder: Binder
    name: RunTier = UNCOMPILED


class _RemainingKernels(NamedTuple):
    """The replacement of a partly compiled plan, and the order in which to compile its kernels."""

    plan: Plan
    order: Sequence[Kernel]


@dataclass(eq=False, slots=True)
class _PlanState:
    """State of a plan: its runs, the seconds of its steps if timed, and the tier that replaces it."""

    has_long_loops: bool
    runs: int = 0
    seconds: Sequence[float] = ()
    submitted: bool = False
    #: with determinism `bitwise`, the tier for all runs
    bitwise_tier: ExecutionTier | None = None
    tier: ExecutionTier | None = None
    remaining: _RemainingKernels | None = None
    #: whether the plan must run without kernels
    is_condemned: bool = False
    lock: Lock = field(default_factory=Lock)

    def allow_resubmission(self) -> None:
        """Let the next run submit the plan again, after its job was dropped."""
        self.submitted = False


class ExecutionTiers:
    """Tiers of plans, and compiled replacements.

    `fast`: NumPy runs a plan until its kernels have been compiled in the background. If there are many kernels, those
    that save most time are used before the others are ready. So its results may change by rounding once or twice, and
    never after that. `bitwise`: kernels are compiled before the first run, or never, so that results never change.
    """

    def __init__(
        self,
        kernels: KernelMaker,
        determinism: Determinism = "fast",
        replaced: Callable[[Plan], object] = lambda plan: None,
    ) -> None:
        """Create tiers with no plans. `replaced` is called with each plan that will not run any more."""
        self._kernels = kernels
        self.compiler = BackgroundCompiler()
        self._is_fast = determinism == "fast"
        self._replaced = replaced
        self._states: weakref.WeakKeyDictionary[Plan, _PlanState] = weakref.WeakKeyDictionary()
        self._reasons = Reasons("kernels are not compiled, and NumPy computes them: %s")
        self._condemned_digests: frozenset[bytes] = frozenset()
        self._lock = Lock()

    def current(self, plan: Plan, deadline: Deadline = NO_DEADLINE) -> ExecutionTier:
        """Return the tier of a plan. If its loops would run longer than compiling takes, wait for its kernels.

        Raises DeadlineExceeded.
        """
        state = self._states.get(plan)
        if state is None:
            with self._lock:
                state = self._states.setdefault(plan, _PlanState(has_long_loops(plan)))
        if plan.digest in self._condemned_digests:
            return self._condemned_tier(plan, state)
        if not self._is_fast:
            return self._bitwise_tier(plan, state)
        if state.has_long_loops and state.tier is None:
            key = state, state.remaining is None
            if not state.submitted:
                self._submit(plan, state)
            while not self.compiler.wait_for(key, _DEADLINE_CHECK_SECONDS):
                deadline.check()
        return state.tier or ExecutionTier(plan, self._kernels.uncompiled_binder)

    def is_first(self, plan: Plan) -> bool:
        """Whether a plan has not run yet, and is not compiled before its first run."""
        state = self._states.get(plan)
        return self._is_fast and state is not None and state.runs == 0 and state.tier is None

    def record_run(self, plan: Plan, seconds: Sequence[float] = ()) -> None:
        """Count a run, and queue the plan for compilation if that is worthwhile.

        Compilation begins after the first run at the earliest, which it would slow down. `seconds` are those of the
        steps, if timed.
        """
        state = self._states.get(plan)
        if (
            state is None
            or not self._is_fast
            or state.submitted
            or (state.tier is not None and state.remaining is None)
        ):
            return
        state.runs += 1
        state.seconds = seconds or state.seconds
        if state.runs >= 2 or plan.flops >= LARGE:
            self._submit(plan, state)

    def condemn(self, digest: bytes) -> None:
        """Run plans with this digest without kernels from now on."""
        self._condemned_digests |= {digest}

    def _condemned_tier(self, plan: Plan, state: _PlanState) -> ExecutionTier:
        """Replace a plan that has crashed processes by a copy that is not bound to kernels."""
        with state.lock:
            if not state.is_condemned or state.tier is None:
                # A copy, since idle instances of the plan, which are found by identity, are bound to the kernels.
                state.tier, state.is_condemned = ExecutionTier(replace(plan), self._kernels.uncompiled_binder), True
                self._replaced(plan)
            return state.tier

    def _submit(self, plan: Plan, state: _PlanState) -> None:
        """Queue the compilation of a plan, unless it is collected first. If that is rejected, the next run retries."""
        # The second stage of a plan that is compiled in parts has a key of its own, as the first one is still running.
        reference, key = weakref.ref(plan), (state, state.remaining is None)
        state.submitted = True
        if not self.compiler.submit(key, lambda: self._promote(reference(), state), state.allow_resubmission):
            state.submitted = False

    def _promote(self, plan: Plan | None, state: _PlanState) -> None:
        """Fuse, select microkernels and compile, or compile the remaining kernels. Raises KernelUnavailable."""
        if plan is None:
            return
        if state.remaining is not None:
            self._install(plan, state, *state.remaining)
            return
        with_bodies, fitting = compilable(plan, self._kernels)
        complete = with_identity_of(fitting.plan if fitting else with_bodies, plan)
        shared_kernels = compile_order(complete, plan, state.seconds)
        order, parts = [op for shared in shared_kernels for op in shared.ops], first_parts(shared_kernels)
        if fitting and parts:
            self._install_in_parts(plan, state, complete, order, map(fitting.plan_part, parts))
        elif shared_kernels or fitting or with_bodies is not plan or self._kernels.has_recipes(complete):
            self._install(plan, state, complete, order)

    def _install_in_parts(
        self, plan: Plan, state: _PlanState, complete: Plan, order: Sequence[Kernel], parts: Iterable[Plan | None]
    ) -> None:
        """Compile the kernels that save most time, and queue the rest behind jobs that other plans wait for.

        Use the first of `parts` that fits in memory. If there is none, or all kernels are in the store, compile all at
        once.
        """
        compiled_before = self._kernels.compiled
        # Try everything first, but stop at the first kernel that is not in the store.
        if self._install(plan, state, complete, order, until=lambda: self._kernels.compiled > compiled_before):
            return
        part = next(filter(None, parts), None)
        if part is None:
            self._install(plan, state, complete, order)
        elif self._install(plan, state, with_identity_of(part, plan), order, PARTLY_COMPILED):
            state.remaining = _RemainingKernels(complete, order)
            self._submit(plan, state)

    def _install(
        self,
        plan: Plan,
        state: _PlanState,
        new_plan: Plan,
        order: Sequence[Kernel],
        name: RunTier = COMPILED,
        until: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Compile the kernels of `new_plan`, and let it replace the plan; return False if stopped."""
        crash_record.set_compiling(plan.digest)
        try:
            binder = self._kernels.compile(
                new_plan, lambda: self.compiler.closing or state.is_condemned or until(), order
            )
        finally:
            crash_record.set_compiling()
        with state.lock:
            if binder is None or state.is_condemned:
                return False
            replaced_plan = state.tier.plan if state.tier else plan
            state.tier, state.remaining = _tier_of(new_plan, binder, name), None
        self._replaced(replaced_plan)
        return True

    def _bitwise_tier(self, plan: Plan, state: _PlanState) -> ExecutionTier:
        """Decide once how a plan runs. Other threads that ask meanwhile wait, so that all compute the same."""
        with state.lock:
            if state.bitwise_tier is None:
                compiled_plan = _with_kernels_in_bodies(plan, self._kernels)
                state.bitwise_tier = _tier_of(compiled_plan, self._compile_now(compiled_plan), COMPILED)
            return state.bitwise_tier

    def _compile_now(self, plan: Plan) -> Binder:
        try:
            return self._kernels.compile(plan) or self._kernels.uncompiled_binder
        except KernelUnavailable as error:
            self._reasons.log(str(error))
        except Exception as error:  # a bug here or in the compiler must not fail requests
            _logger.debug("the kernels of a plan failed", exc_info=True)
            self._reasons.log(f"{type(error).__name__}: {error}")
        return self._kernels.uncompiled_binder


def compilable(plan: Plan, terms: KernelProperties) -> tuple[Plan, Compilable | None]:
    """Compile the bodies of a plan's loops, and find which of its other nodes can be compiled.

    The second value is None if there are none, or none that fit in memory.
    """
    with_bodies = _with_kernels_in_bodies(plan, terms)
    fitting = compiled_within(
        graph_of(with_bodies, registry()),
        plan.peak_bytes,
        terms.threads,
        microkernels=terms.has_microkernels,
        few_launches=terms.few_launches,
    )
    return with_bodies, fitting


def _with_kernels_in_bodies(plan: Plan, terms: KernelProperties) -> Plan:
    """Plan the bodies of a plan's loops with kernels; return the plan itself if it has no loops."""
    if not any(isinstance(step.op, RunsPlans) for step in plan.steps):
        return plan
    graph = with_compiled_bodies(
        graph_of(plan, registry()), microkernels=terms.has_microkernels, few_launches=terms.few_launches
    )
    return with_identity_of(make_plan(graph, NO_LIMITS), plan)


def _tier_of(plan: Plan, binder: Binder, name: RunTier) -> ExecutionTier:
    return ExecutionTier(plan, binder, name if binder.has_kernels else UNCOMPILED)
