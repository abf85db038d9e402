"""Tiers of a plan: NumPy runs it at first, and compiled kernels run it once they are worth compiling.

A plan that has run twice, or once if it is large, is handed to the background compiler: one thread with a bounded
queue, in which owners take turns. When its kernels are ready, another plan, with fused kernels, takes its place:

    run 1    interpreted, its steps timed                                     UNCOMPILED
    run 2    prepared, with NumPy; then its kernels are queued                UNCOMPILED
    run 3    if there are many kernels, those that save most time run first   PARTLY_COMPILED
    run 4    all kernels                                                      COMPILED

A plan whose loops would run longer than compiling takes waits for its kernels. With determinism `bitwise` there is one
tier: what fusion pays for at once is compiled before the first run, since a kernel may round differently than NumPy. A
plan whose kernels have ended a process is condemned by its digest, and runs by NumPy from then on.

Plans are known by identity, so that compiled plans are dropped together with the plans that they replace.
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
from engine.compiler.plan import Plan, graph_of, make_plan, standing_for
from engine.ir.fairness import Turns, charge_to, current_owner
from engine.ir.op import Kernel
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline
from engine.ir.run_report import COMPILED, PARTLY_COMPILED, UNCOMPILED, RunTier
from engine.ops import registry
from engine.runtime.binding import Binder
from engine.runtime.crash_record import crash_record

#: jobs that wait; one more is refused, and may be submitted again
MOST_WAITING: Final = 256
#: keys of failed jobs that are remembered
MOST_FAILED: Final = 4096
#: FLOPs from which a plan is compiled after its first run
LARGE: Final = 10_000_000
#: seconds between two checks of the deadline, while a run waits for kernels
_LOOK_SECONDS: Final = 0.05

_logger = logging.getLogger("gradserve.kernels")

CompileJob = Callable[[], object]
Determinism = Literal["fast", "bitwise"]
Compiling = Literal["on", "off"]


class _Waiting(NamedTuple):
    """A job, and a callback for when it is dropped."""

    key: Hashable
    job: CompileJob
    dropped: CompileJob


class BackgroundCompiler:
    """Background thread that runs jobs one after the other. It starts with the first job.

    Owners take turns, by the time that their jobs take; jobs of one owner run in their order. If the queue is full, the
    owner with the most jobs loses the last of them.

    A job is known by its key. A job that waits, runs or has failed is not taken again; one that has succeeded is, since
    its kernels may have been dropped. If a job raises, one line of the log says why. Jobs that a job submits belong to
    its owner.

    The thread never outlives the interpreter, and is never stopped inside a compiler: `close`, the loss of the last
    reference and the end of the process wait for the running job, and drop those that wait.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._queue = _Queue(most_waiting)
        # At the end of a process, this runs before daemon threads are abandoned.
        self._finalizer = weakref.finalize(self, _Queue.close, self._queue)

    def submit(self, key: Hashable, job: CompileJob, dropped: CompileJob = lambda: None) -> bool:
        """Queue a job; False if it is not taken: its key is known, the queue is full, or this is closed.

        `dropped` is called if the job was taken, and then gave way to another owner's.
        """
        return self._queue.add(current_owner(), _Waiting(key, job, dropped))

    @property
    def closing(self) -> bool:
        """Whether this is closed: a job of several kernels checks it between them."""
        return self._queue.closing

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits or runs; False after `timeout` seconds. A job must not call this."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(queue.is_idle, timeout)

    def wait_for(self, key: Hashable, timeout: float) -> bool:
        """Wait until no job of this key waits or runs; False after `timeout` seconds."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(lambda: not queue.has(key), timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Take no more jobs, drop those that wait, and wait for the one that runs.

        Returns False if that took longer than `timeout` seconds: then a process should end by `os._exit`, which leaves
        the compiler alone.
        """
        self._finalizer.detach()
        return self._queue.close(timeout)


class _Queue:
    """State that the thread shares with callers. It has no reference to its compiler, which can thus be collected."""

    def __init__(self, most_waiting: int) -> None:
        self.closing = False
        self._most_waiting = most_waiting
        self._waiting: Turns[_Waiting] = Turns()
        self._known: set[Hashable] = set()  # keys of waiting jobs
        self._running: set[Hashable] = set()  # one at most
        self._failed: OrderedDict[Hashable, str] = OrderedDict()
        self._thread: Thread | None = None
        self.changed = Condition()

    def add(self, owner: Hashable, new: _Waiting) -> bool:
        with self.changed:
            known = new.key in self._known or new.key in self._running or new.key in self._failed
            if known or self.closing or not self._has_thread():
                return False
            if self._waiting.count >= self._most_waiting and not self._displace(owner):
                return False
            self._waiting.put(owner, new)
            self._known.add(new.key)
            self.changed.notify_all()
            return True

    def _displace(self, owner: Hashable) -> bool:
        """Drop a job of the owner who has the most of them, unless that would be unfair."""
        most = self._waiting.most() if self._waiting.count else owner
        if self._waiting.of(most) <= self._waiting.of(owner) + 1:
            return False
        last = self._waiting.drop_last(most)
        self._known.discard(last.key)
        last.dropped()
        return True

    def has(self, key: Hashable) -> bool:
        return key in self._known or key in self._running

    def is_idle(self) -> bool:
        return not self._waiting.count and not self._running

    def close(self, timeout: float | None = None) -> bool:
        with self.changed:
            self.closing = True
            dropped = self._waiting.clear()
            self.changed.notify_all()
            thread = self._thread
        dropped.clear()  # not under the lock: what a job held may submit others as it goes
        if thread is None or thread is current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _has_thread(self) -> bool:
        """Start the thread if there is none: a forked process has lost it. Returns whether there is one."""
        if self._thread is None or not self._thread.is_alive():
            thread = Thread(target=self._serve, name="kernels", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # too many threads, or the interpreter ends
                return False
            self._thread = thread
        return True

    def _serve(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Wait for a job and run it; False at the end. Keeps no job alive while it waits."""
        with self.changed:
            self.changed.wait_for(lambda: self._waiting.count or self.closing)
            if self.closing:
                return False
            owner = self._waiting.first()
            key, job, _ = self._waiting.take_next(owner)
            self._known.discard(key)
            self._running.add(key)
        begun = time.perf_counter()
        charge_to(owner)
        try:
            self._attempt(key, job)
        finally:
            with self.changed:
                self._waiting.charge(owner, time.perf_counter() - begun)
                self._running.discard(key)
                self.changed.notify_all()
        return True

    def _attempt(self, key: Hashable, job: CompileJob) -> None:
        try:
            job()
        except KernelUnavailable as error:
            self._note(key, str(error))
        except Exception as error:  # a fault of ours, or of the compiler: no request is to fail for it
            _logger.debug("the job of a kernel failed", exc_info=True)
            self._note(key, f"{type(error).__name__}: {error}")

    def _note(self, key: Hashable, reason: str) -> None:
        """Remember a failure, and log it, unless one with the same reason was logged."""
        is_new = reason not in self._failed.values()
        with self.changed:
            self._failed[key] = reason
            if len(self._failed) > MOST_FAILED:
                self._failed.popitem(last=False)
        if is_new:
            _logger.warning("a kernel was not compiled, and NumPy computes it: %s", reason)


class KernelTerms(Protocol):
    """Properties of a device's kernels for which plans are written."""

    @property
    def threads(self) -> int:
        """Threads of a fused kernel."""

    @property
    def has_microkernels(self) -> bool:
        """Whether there are microkernels: kernels of single ops for their shapes."""

    @property
    def few_launches(self) -> bool:
        """Whether plans should have few steps, since each is a launch."""


class KernelMaker(KernelTerms, Protocol):
    """Maker of the kernels of plans for one device, as in `engine.runtime.numpy_backend`."""

    @property
    def compiled(self) -> int:
        """Number of kernels that were compiled so far, and not found in the store."""

    def has_recipes(self, plan: Plan) -> bool:
        """Whether a plan has steps, beside fused nodes and microkernels, for which kernels are compiled."""

    @property
    def without(self) -> Binder:
        """Binder of plans without compiled kernels."""

    def compile(self, plan: Plan, stop: Callable[[], bool] = ..., first: Iterable[Kernel] = ...) -> Binder | None:
        """Make the binder of a plan with its kernels, those of the ops `first` first; None if `stop` came true.

        Raises KernelUnavailable.
        """


class ExecutionTier(NamedTuple):
    """The plan that runs, or one in its place, its binder, and how much of it is compiled."""

    plan: Plan
    binder: Binder
    name: RunTier = UNCOMPILED


class _Rest(NamedTuple):
    """Successor of a partly compiled plan, and the order in which its kernels are made."""

    plan: Plan
    order: Sequence[Kernel]


@dataclass(eq=False, slots=True)
class _PlanState:
    """State of a plan: its runs, the seconds of its steps, if they were timed, and the plan that takes its place."""

    has_long_loops: bool
    runs: int = 0
    seconds: Sequence[float] = ()
    asked: bool = False
    #: the tier for all runs, decided before the first one
    decided: ExecutionTier | None = None
    instead: ExecutionTier | None = None
    rest: _Rest | None = None
    #: whether it is to have no kernels
    spared: bool = False
    lock: Lock = field(default_factory=Lock)

    def ask_again(self) -> None:
        """Let the next run ask again: its job was dropped."""
        self.asked = False


class ExecutionTiers:
    """Plans, and the compiled plans in their places.

    `fast`: a plan runs by NumPy until its kernels arrive from the background. Of many kernels, those that save most
    time are used before the others are there. So its bits may change once or twice, and never after. `bitwise`: the
    first run decides. What fusion pays for at once is compiled before it, and nothing else ever.
    """

    def __init__(
        self,
        kernels: KernelMaker,
        determinism: Determinism = "fast",
        replaced: Callable[[Plan], object] = lambda plan: None,
    ) -> None:
        """`replaced` is called with each plan that runs no more."""
        self._kernels = kernels
        self.compiler = BackgroundCompiler()
        self._is_fast = determinism == "fast"
        self._replaced = replaced
        self._states: weakref.WeakKeyDictionary[Plan, _PlanState] = weakref.WeakKeyDictionary()
        self._reasons = Reasons("kernels are not compiled, and NumPy computes them: %s")
        self._condemned: frozenset[bytes] = frozenset()
        self._lock = Lock()

    def current(self, plan: Plan, deadline: Deadline = NO_DEADLINE) -> ExecutionTier:
        """Find the tier of a plan. A plan whose loops would run longer than compiling takes waits for its kernels.

        Raises DeadlineExceeded.
        """
        state = self._states.get(plan)
        if state is None:
            with self._lock:
                state = self._states.setdefault(plan, _PlanState(has_long_loops(plan)))
        if plan.digest in self._condemned:
            return self._spared(plan, state)
        if not self._is_fast:
            return self._decided(plan, state)
        if state.has_long_loops and state.instead is None:
            key = state, state.rest is None
            if not state.asked:
                self._ask(plan, state)
            while not self.compiler.wait_for(key, _LOOK_SECONDS):
                deadline.check()
        return state.instead or ExecutionTier(plan, self._kernels.without)

    def is_first(self, plan: Plan) -> bool:
        """Whether a plan has not run yet, as far as is known, and is not compiled before it has."""
        state = self._states.get(plan)
        return self._is_fast and state is not None and state.runs == 0 and state.instead is None

    def ran(self, plan: Plan, seconds: Sequence[float] = ()) -> None:
        """Count a run, and have the plan compiled if that is worth it: not during its first run, which would be slower.

        `seconds` are those of its steps, if they were timed.
        """
        state = self._states.get(plan)
        if state is None or not self._is_fast or state.asked or (state.instead is not None and state.rest is None):
            return
        state.runs += 1
        state.seconds = seconds or state.seconds
        if state.runs >= 2 or plan.flops >= LARGE:
            self._ask(plan, state)

    def condemn(self, digest: bytes) -> None:
        """Run plans of this digest by NumPy alone from now on."""
        self._condemned |= {digest}

    def _spared(self, plan: Plan, state: _PlanState) -> ExecutionTier:
        """Replace a plan that has ended processes by a copy that is not bound to kernels."""
        with state.lock:
            if not state.spared or state.instead is None:
                state.instead, state.spared = ExecutionTier(replace(plan), self._kernels.without), True
                self._replaced(plan)
            return state.instead

    def _ask(self, plan: Plan, state: _PlanState) -> None:
        """Queue the compilation of a plan, unless it is collected first. If the queue is full, the next run asks."""
        reference, key = weakref.ref(plan), (state, state.rest is None)
        state.asked = True
        if not self.compiler.submit(key, lambda: self._promote(reference(), state), state.ask_again):
            state.asked = False

    def _promote(self, plan: Plan | None, state: _PlanState) -> None:
        """Fuse, select microkernels, and compile all of it, or the rest of it. Raises KernelUnavailable."""
        if plan is None:
            return
        if state.rest is not None:
            self._put(plan, state, *state.rest)
            return
        alike, within = compilable(plan, self._kernels)
        whole = standing_for(within.plan if within else alike, plan)
        shared_kernels = compile_order(whole, plan, state.seconds)
        order, parts = [op for shared in shared_kernels for op in shared.ops], first_parts(shared_kernels)
        if within and parts:
            self._put_by_parts(plan, state, whole, order, map(within.partly, parts))
        elif shared_kernels or within or alike is not plan or self._kernels.has_recipes(whole):
            self._put(plan, state, whole, order)

    def _put_by_parts(
        self, plan: Plan, state: _PlanState, whole: Plan, order: Sequence[Kernel], parts: Iterable[Plan | None]
    ) -> None:
        """Compile the part that saves the most time, and queue the rest behind what others, and this owner, wait for.

        The part is the first of `parts` for which there is memory. If there is none, or all kernels are in the store,
        everything is compiled at once.
        """
        before = self._kernels.compiled
        if self._put(plan, state, whole, order, until=lambda: self._kernels.compiled > before):
            return
        part = next(filter(None, parts), None)
        if part is None:
            self._put(plan, state, whole, order)
        elif self._put(plan, state, standing_for(part, plan), order, PARTLY_COMPILED):
            state.rest = _Rest(whole, order)
            self._ask(plan, state)

    def _put(
        self,
        plan: Plan,
        state: _PlanState,
        instead: Plan,
        order: Sequence[Kernel],
        name: RunTier = COMPILED,
        until: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Compile the plan `instead`, and put it in the plan's place; False if that was stopped."""
        crash_record.compiles(plan.digest)
        try:
            binder = self._kernels.compile(instead, lambda: self.compiler.closing or state.spared or until(), order)
        finally:
            crash_record.compiles()
        with state.lock:
            if binder is None or state.spared:
                return False
            before = state.instead.plan if state.instead else plan
            state.instead, state.rest = _tier(instead, binder, name), None
        self._replaced(before)
        return True

    def _decided(self, plan: Plan, state: _PlanState) -> ExecutionTier:
        """Decide once how a plan runs. Threads that ask meanwhile wait, so that all compute the same."""
        with state.lock:
            if state.decided is None:
                instead = _with_kernels_in_bodies(plan, self._kernels)
                state.decided = _tier(instead, self._decide(instead), COMPILED)
            return state.decided

    def _decide(self, plan: Plan) -> Binder:
        try:
            return self._kernels.compile(plan) or self._kernels.without
        except KernelUnavailable as error:
            self._reasons.tell(str(error))
        except Exception as error:  # a fault of ours, or of the compiler: no request is to fail for it
            _logger.debug("the kernels of a plan failed", exc_info=True)
            self._reasons.tell(f"{type(error).__name__}: {error}")
        return self._kernels.without


def compilable(plan: Plan, terms: KernelTerms) -> tuple[Plan, Compilable | None]:
    """Make the bodies of a plan's loops compilable, and find what else of it can be compiled.

    The latter is None if that is nothing, or nothing for which there is memory.
    """
    alike = _with_kernels_in_bodies(plan, terms)
    within = compiled_within(
        graph_of(alike, registry()),
        plan.peak_bytes,
        terms.threads,
        microkernels=terms.has_microkernels,
        few_launches=terms.few_launches,
    )
    return alike, within


def _with_kernels_in_bodies(plan: Plan, terms: KernelTerms) -> Plan:
    """Make the bodies of a plan's loops compilable; returns the plan itself if it has no loops."""
    if not any(isinstance(step.op, RunsPlans) for step in plan.steps):
        return plan
    graph = with_compiled_bodies(
        graph_of(plan, registry()), microkernels=terms.has_microkernels, few_launches=terms.few_launches
    )
    return standing_for(make_plan(graph, NO_LIMITS), plan)


def _tier(plan: Plan, binder: Binder, name: RunTier) -> ExecutionTier:
    return ExecutionTier(plan, binder, name if binder.has_kernels else UNCOMPILED)
