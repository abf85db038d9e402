"""Tiers of a plan: NumPy runs it at first, and compiled kernels run it once they are worth compiling.

A plan that has run twice, or once if it is large, is handed to the background compiler: one thread with a bounded
queue, in which owners take turns. When its kernels are ready, another plan, with fused kernels, takes its place. Plans
are known by identity, so that what was compiled goes when its plan does.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from threading import Condition, Lock, Thread, current_thread
from typing import Final, Literal, NamedTuple, Protocol

from engine.codegen.native.kernel_errors import KernelUnavailable, Reasons
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.control_flow import RunsPlans, has_long_loops
from engine.compiler.estimates import compile_order, first_parts
from engine.compiler.fit_memory import Compilable, compiled_within
from engine.compiler.plan import Plan, graph_of, make_plan, standing_for
from engine.ir.fairness import Turns, charge_to, current_owner
from engine.ir.limits import NO_DEADLINE, NO_LIMITS, Deadline
from engine.ir.op import Kernel
from engine.ir.run_report import COMPILED, PARTLY_COMPILED, UNCOMPILED, RunTier
from engine.ops import registry
from engine.runtime.binding import Binder
from engine.runtime.crash_record import crash_record

# Compiling in the background: one thread, a bounded queue, and an end that waits for what is inside the compiler.

#: jobs that wait; one more is refused, and may be handed in again
MOST_WAITING: Final = 256
#: keys of failed jobs that are remembered
MOST_FAILED: Final = 4096

_logger = logging.getLogger("gradserve.kernels")

CompileJob = Callable[[], object]


class _Waiting(NamedTuple):
    """A job, and who is told where it is dropped after all."""

    key: Hashable
    job: CompileJob
    dropped: CompileJob


class BackgroundCompiler:
    """Runner of jobs, one after the other, in a thread that begins with the first of them.

    Owners take turns, by the time that their jobs take, and those of one run in their order. Where too many wait, the
    last one of whoever has the most gives way.

    A job is known by its key: one that waits, runs or has failed is not taken again; one that has succeeded is, since
    what it made may have been dropped. Where a job raises, one line of the log says why; whoever handed it in goes on
    with what it has. What a job hands in is its owner's, and waits behind what that one has handed in before.

    The thread never outlives the interpreter, and is never stopped inside a compiler: `close`, the loss of the last
    reference and the end of the process let the job that runs come to its end, and drop those that wait.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._queue = _Queue(most_waiting)
        # At the end of a process, this comes before threads that are daemons are left where they are.
        self._finalizer = weakref.finalize(self, _Queue.close, self._queue)

    def submit(self, key: Hashable, job: CompileJob, dropped: CompileJob = lambda: None) -> bool:
        """Have a job run; False where it is not taken: its key is known, the queue is full, or this is closed.

        `dropped` is called where it was taken, and has given way to another owner's.
        """
        return self._queue.add(current_owner(), _Waiting(key, job, dropped))

    @property
    def closing(self) -> bool:
        """Whether the end has come: a job of several kernels looks at it between them."""
        return self._queue.closing

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until no job waits or runs; False where that took longer than `timeout` seconds. Not for jobs."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(queue.is_idle, timeout)

    def wait_for(self, key: Hashable, timeout: float) -> bool:
        """Wait until no job of this key waits or runs; False where that took longer than `timeout` seconds."""
        queue = self._queue
        with queue.changed:
            return queue.changed.wait_for(lambda: not queue.has(key), timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Take no more jobs, drop those that wait, and wait for the one that runs.

        False where that one took longer than `timeout` seconds: a process that ends then should do so by `os._exit`,
        which leaves the compiler alone.
        """
        self._finalizer.detach()
        return self._queue.close(timeout)


class _Queue:
    """State that the thread shares with those who hand in. It does not know its compiler, so that this can be lost."""

    def __init__(self, most_waiting: int) -> None:
        self.closing = False
        self._most_waiting = most_waiting
        self._waiting: Turns[_Waiting] = Turns()
        self._known: set[Hashable] = set()  # the keys of those that wait
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
        """Drop a job of whoever has the most of them, unless that would not be fair."""
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
        dropped.clear()  # not under the lock: what a job held may hand in others as it goes
        if thread is None or thread is current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _has_thread(self) -> bool:
        """Whether there is a thread, a new one where there was none: a process that was forked has lost it."""
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
        """Run one job, when there is one; False at the end. Holds on to no job while it waits."""
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
        """Remember a failure; say so, unless another one for the same reason was said."""
        is_new = reason not in self._failed.values()
        with self.changed:
            self._failed[key] = reason
            if len(self._failed) > MOST_FAILED:
                self._failed.popitem(last=False)
        if is_new:
            _logger.warning("a kernel was not compiled, and NumPy computes it: %s", reason)


Determinism = Literal["fast", "bitwise"]
Compiling = Literal["on", "off"]

#: FLOPs from which the first run is reason enough
LARGE: Final = 10_000_000
#: between two looks at the deadline, of who waits
_LOOK_SECONDS: Final = 0.05


class KernelTerms(Protocol):
    """Terms on which plans are written for the kernels of a device."""

    @property
    def threads(self) -> int:
        """What may take part in a loop."""

    @property
    def has_microkernels(self) -> bool:
        """Whether there are kernels of their shapes for single ops, too."""

    @property
    def few_launches(self) -> bool:
        """Whether plans are to have few steps, since each is a launch, as `compiled_within` and bodies of loops say."""


class KernelMaker(KernelTerms, Protocol):
    """Maker of the kernels of plans for one device: `engine.runtime.numpy_backend` has those of processors."""

    @property
    def compiled(self) -> int:
        """Kernels that were compiled so far, and not found where they are kept."""

    def has_recipes(self, plan: Plan) -> bool:
        """Whether a plan has steps that are no loops, and no microkernels, for which kernels are to be compiled."""

    @property
    def without(self) -> Binder:
        """Binds plans of which nothing is compiled."""

    def compile(self, plan: Plan, stop: Callable[[], bool] = ..., first: Iterable[Kernel] = ...) -> Binder | None:
        """Binds a plan's loops by kernels, made in the order of the ops `first`; None where `stop` came true meanwhile.

        Raises KernelUnavailable.
        """


class ExecutionTier(NamedTuple):
    """A plan as it runs: itself or one in its place, what binds its steps, and how much of it is compiled."""

    plan: Plan
    binder: Binder
    name: RunTier = UNCOMPILED


class _Rest(NamedTuple):
    """Successor of what has taken a plan's place, and the order in which its kernels are made."""

    plan: Plan
    order: Sequence[Kernel]


class _PlanState:
    """State of a plan: its runs, and what takes its place, as soon as there is something. Known by its identity."""

    __slots__ = ("asked", "decided", "has_long_loops", "instead", "lock", "rest", "runs", "seconds", "spared")

    def __init__(self, *, has_long_loops: bool) -> None:
        self.has_long_loops = has_long_loops
        self.runs = 0
        self.seconds: Sequence[float] = ()  # of the steps of a run, where that was looked at
        self.asked = False
        self.decided: ExecutionTier | None = None  # before the first run
        self.instead: ExecutionTier | None = None
        self.rest: _Rest | None = None
        self.spared = False  # whether it is to have no kernels
        self.lock = Lock()

    def ask_again(self) -> None:
        """It was not compiled, since others came first."""
        self.asked = False


class ExecutionTiers:
    """Plans, and the compiled ones in their places.

    `fast`: a plan runs by NumPy until its kernels arrive from the background. Of many, those come first that a run
    spends most time without, and are used before the others are there. So its bits may change once, or twice, and never
    after. `bitwise`: it is decided before the first run. What fusion pays for at once is compiled then, and nothing
    else ever.
    """

    def __init__(
        self,
        kernels: KernelMaker,
        determinism: Determinism = "fast",
        replaced: Callable[[Plan], object] = lambda plan: None,
    ) -> None:
        """`replaced` is called with each plan that is not run any more."""
        self._kernels = kernels
        self.compiler = BackgroundCompiler()
        self._is_fast = determinism == "fast"
        self._replaced = replaced
        self._states: weakref.WeakKeyDictionary[Plan, _PlanState] = weakref.WeakKeyDictionary()
        self._reasons = Reasons("kernels are not compiled, and NumPy computes them: %s")
        self._condemned: frozenset[bytes] = frozenset()
        self._lock = Lock()

    def current(self, plan: Plan, deadline: Deadline = NO_DEADLINE) -> ExecutionTier:
        """How to run this plan, once its kernels are there where its loops would take longer than to compile them.

        Raises DeadlineExceeded.
        """
        state = self._states.get(plan) or self._begin(plan)
        if plan.digest in self._condemned:
            return self._spared(plan, state)
        if not self._is_fast:
            return self._decided(plan, state)
        if state.has_long_loops and state.instead is None:
            self._await_loops(plan, state, deadline)
        return state.instead or ExecutionTier(plan, self._kernels.without)

    def _await_loops(self, plan: Plan, state: _PlanState, deadline: Deadline) -> None:
        key = state, state.rest is None
        if not state.asked:
            self._ask(plan, state)
        while not self.compiler.wait_for(key, _LOOK_SECONDS):
            deadline.check()

    def is_first(self, plan: Plan) -> bool:
        """Whether a plan has not run yet, as far as is known, and nothing is made for it before it has."""
        state = self._states.get(plan)
        return self._is_fast and state is not None and state.runs == 0 and state.instead is None

    def ran(self, plan: Plan, seconds: Sequence[float] = ()) -> None:
        """It has run once more, and is compiled if that is worth it: not during its first run, which it would slow.

        `seconds` are those of its steps, where they were looked at.
        """
        state = self._states.get(plan)
        if state is None or not self._is_fast or state.asked or (state.instead is not None and state.rest is None):
            return
        state.runs += 1
        state.seconds = seconds or state.seconds
        if state.runs >= 2 or plan.flops >= LARGE:
            self._ask(plan, state)

    def condemn(self, digest: bytes) -> None:
        """From now on, plans of this digest run by NumPy alone."""
        self._condemned |= {digest}

    def _begin(self, plan: Plan) -> _PlanState:
        with self._lock:
            return self._states.setdefault(plan, _PlanState(has_long_loops=has_long_loops(plan)))

    def _spared(self, plan: Plan, state: _PlanState) -> ExecutionTier:
        """A plan that has ended processes: one like it, which nobody has bound by kernels, takes its place."""
        with state.lock:
            if not state.spared or state.instead is None:
                state.instead, state.spared = ExecutionTier(replace(plan), self._kernels.without), True
                self._replaced(plan)
            return state.instead

    def _ask(self, plan: Plan, state: _PlanState) -> None:
        """Have a plan compiled, unless nobody wants it any more by then. Where the queue is full, its next run asks."""
        wanted, key = weakref.ref(plan), (state, state.rest is None)
        state.asked = True
        if not self.compiler.submit(key, lambda: self._promote(wanted(), state), state.ask_again):
            state.asked = False

    def _promote(self, plan: Plan | None, state: _PlanState) -> None:
        """Fuse, select microkernels, and compile it all; or what is left of it. Raises KernelUnavailable."""
        if plan is None:
            return
        if state.rest is not None:
            self._put(plan, state, *state.rest)
            return
        alike, within = compilable(plan, self._kernels)
        whole = standing_for(within.plan if within else alike, plan)
        found = compile_order(whole, plan, state.seconds)
        order, parts = [op for shared in found for op in shared.ops], first_parts(found)
        if within and parts:
            self._put_by_parts(plan, state, whole, order, map(within.partly, parts))
        elif found or within or alike is not plan or self._kernels.has_recipes(whole):
            self._put(plan, state, whole, order)

    def _put_by_parts(
        self, plan: Plan, state: _PlanState, whole: Plan, order: Sequence[Kernel], parts: Iterable[Plan | None]
    ) -> None:
        """Use what saves the most time, and have the rest compiled behind what others, and this owner, wait for.

        Of `parts`, it is the first that there is memory for. Where there is none, or all kernels are kept, it is done
        at once.
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
        """Compile what is to take a plan's place, and put it there; False where that has ended early."""
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
        """How a plan runs, whoever asks first: others wait, so that all compute the same."""
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
    """A plan with the bodies of its loops as kernels make them, and that with all else that can be compiled.

    None where that is nothing, or nothing for which there is memory.
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
    """The plan with the bodies of its loops as kernels make them; itself, where it has none."""
    if not any(isinstance(step.op, RunsPlans) for step in plan.steps):
        return plan
    found = with_compiled_bodies(
        graph_of(plan, registry()), microkernels=terms.has_microkernels, few_launches=terms.few_launches
    )
    return standing_for(make_plan(found, NO_LIMITS), plan)


def _tier(plan: Plan, binder: Binder, name: RunTier) -> ExecutionTier:
    return ExecutionTier(plan, binder, name if binder.has_kernels else UNCOMPILED)
