"""Executors: run plans on one device, step by step with any array module, or prepared and compiled.

    run → execute → the plan's tier → a prepared plan, which the instance pool lends
                  → interpret: step by step, if an observer watches, and the first time

`interpret` is the reference that every other way of running a plan must agree with. It is a single loop: a slot for
each result, a few buffers, and for each step operands from the slots, an array on a buffer, and the op's NumPy
implementation. For `y = sum(x * x)` with x a feed:

    slots    0: x (fed)     1: x * x at buffer 0, byte 0     2: its sum at buffer 1, byte 0
    steps    multiply (0, 0) → 1, then sum (1) → 2, after which slot 1 is dead

Binding a plan costs more than one run, and many graphs come only once. So `interpret` runs a plan the first time. For
later runs, a prepared plan with arrays and calls in place is kept in a pool. When the plan's tier has compiled kernels,
they replace steps (`engine.runtime.tiers`).

A plan only accepts feeds of exactly the types that it was made for, since others would be broadcast or cast silently.
Feeds that are not dense or not aligned are copied first: kernels assume the plan's strides, and NumPy adds up
misaligned arrays in another order.
"""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar, Final, Protocol, Self

import numpy as np

from engine.codegen.native.machine_code import KernelStore
from engine.compiler.plan import Plan, Step
from engine.ir.errors import DeadlineExceeded, EngineError, MissingFeed
from engine.ir.fairness import FairEviction, current_owner
from engine.ir.graph import locate_error
from engine.ir.op import Array, Namespace, View
from engine.ir.run_context import NO_DEADLINE, Deadline, RunContext
from engine.ir.run_report import COMPILED, UNCOMPILED
from engine.ir.tensor_type import TensorType, require_type
from engine.runtime.binding import Binder
from engine.runtime.crash_record import crash_record
from engine.runtime.tiers import Compiling, Determinism, ExecutionTier, ExecutionTiers

#: fraction of a limited memory for idle plans, as one in N; the rest is for running plans and other caches
IDLE_SHARE: Final = 4
#: default bytes of all idle plans
INSTANCE_BYTES: Final = 1 << 28
#: maximum idle instances of one plan; more are only useful if more threads run it at once
MOST_OF_A_PLAN: Final = 8


class ReadyPlan(Protocol):
    """A prepared plan, for one thread at a time."""

    @property
    def nbytes(self) -> int:
        """Bytes of the plan, which are constant while nobody runs it."""

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = ...) -> list[Array]:
        """Run the plan as `Executor.execute` does."""


@dataclass(eq=False, slots=True)
class _Entry:
    """Idle instances of one plan, each with its bytes, and their total bytes."""

    plan: weakref.ref[Plan]
    idle: list[tuple[ReadyPlan, int]] = field(default_factory=list)
    nbytes: int = 0
    retired: bool = False


class InstancePool:
    """A pool of idle prepared plans, of at most `bytes` in total. If a plan is collected, so are its instances.

    Threads may share the pool. An instance that was lent belongs to the borrower until it is given back.
    """

    def __init__(self, bytes: int = INSTANCE_BYTES) -> None:
        self.bytes = bytes
        #: bytes of idle instances
        self.idle_bytes = 0
        self._entries: dict[Hashable, _Entry] = {}  # by identity of the plan
        self._claims = FairEviction()
        self._collected: deque[int] = deque()
        self._lock = Lock()

    def lend(self, plan: Plan) -> ReadyPlan | None:
        """Take an idle instance of this plan out of the pool, or return None if there is none."""
        with self._lock:
            entry = self._entries.get(id(plan))
            if entry is None or entry.plan() is not plan or not entry.idle:
                return None
            ready, nbytes = entry.idle.pop()
            entry.nbytes -= nbytes
            self.idle_bytes -= nbytes
            return ready

    def give(self, plan: Plan, ready: ReadyPlan) -> None:
        """Return an instance of this plan to the pool.

        If the pool is full, the owner that holds the most loses its least recently used instances.
        """
        with self._lock:
            if self._collected:
                self._sweep()
            entry = self._entries.get(id(plan)) or self._entry(plan)
            nbytes = ready.nbytes
            if nbytes <= self.bytes and len(entry.idle) < MOST_OF_A_PLAN and not entry.retired:
                entry.idle.append((ready, nbytes))
                entry.nbytes += nbytes
                self.idle_bytes += nbytes
            self._claims.use(id(plan), current_owner(), entry.nbytes)
            while self.idle_bytes > self.bytes:
                self._drop(self._claims.evict(by_size=True))

    def retire(self, plan: Plan) -> None:
        """Drop the instances of a plan that has been replaced, including running ones when they are given back."""
        with self._lock:
            entry = self._entries.get(id(plan)) or self._entry(plan)
            entry.retired = True
            self.idle_bytes -= entry.nbytes
            entry.nbytes = 0
            entry.idle.clear()

    def clear(self) -> None:
        """Drop all idle instances."""
        with self._lock:
            self._entries.clear()
            self._claims.clear()
            self.idle_bytes = 0

    def _entry(self, plan: Plan) -> _Entry:
        key = id(plan)
        entry = self._entries[key] = _Entry(weakref.ref(plan, lambda _: self._on_plan_collected(key)))
        return entry

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)  # there is none where others still hold it
        if entry is not None:
            self.idle_bytes -= entry.nbytes

    def _on_plan_collected(self, key: int) -> None:
        """Drop the entry of a plan that was collected.

        The garbage collector may call this anywhere, even in a thread that holds the lock. Then the next caller drops
        it.
        """
        self._collected.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._lock.release()

    def _sweep(self) -> None:
        while self._collected:
            key = self._collected.popleft()
            self._claims.drop(key)
            self._drop(key)


Buffer = Any  # memory allocated by an executor
#: bytes of the workspace that kernels and libraries of a GPU share
DEVICE_WORKSPACE: Final = 64 << 20
#: called after each step with the context of the run, the step, its operands and its result
Observer = Callable[[RunContext, Step, Sequence[Array], Array], None]
#: function of a prepared plan, feeds and a deadline that returns the results
RunReady = Callable[[ReadyPlan, Mapping[Hashable, Array], Deadline], list[Array]]


def checked_feed(feeds: Mapping[Hashable, Array], feed: Hashable, planned: TensorType) -> Array:
    """Return a feed, or a dense and aligned copy of it, after checking that it has the planned type.

    Raises MissingFeed, ShapeMismatch and DtypeMismatch.
    """
    array = feeds.get(feed)
    if array is None:
        name, node = _describe_feed(feed)
        raise MissingFeed(f"{name} is missing", node=node, expected="a feed", got="nothing")
    if array.shape != planned.shape or array.dtype != planned.dtype:
        raise _type_error(feed, TensorType.of(array), planned)
    # CuPy has no flag for alignment, as all memory that it allocates is aligned.
    is_dense_and_aligned = array.flags.c_contiguous and getattr(array.flags, "aligned", True)
    return array if is_dense_and_aligned else array.copy(order="C")


def _type_error(feed: Hashable, type: TensorType, planned: TensorType) -> EngineError:
    name, node = _describe_feed(feed)
    try:
        require_type(type, planned, name)
    except EngineError as error:
        error.node = node
        return error
    raise AssertionError(f"{type} is {planned}")


def _describe_feed(feed: Hashable) -> tuple[str, int | None]:
    """Return a feed's name for messages, and its node. Leaves are fed by node, other feeds by role and node."""
    match feed:
        case int(node):
            return f"the feed of node {node}", node
        case (str(role), int(node)):
            return f"the feed of node {node} under {role}", node
        case _:
            return f"the feed {feed}", None


class Stopwatch:
    """Observer for `Executor.interpret` that records the seconds of each step, by which kernels are ordered.

    They are CPU seconds of this thread, so that other threads do not count. Each takes four bytes.
    """

    __slots__ = ("_before", "_clock", "seconds")

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        #: one entry per step, in order
        self.seconds = array("f")
        self._before = clock()

    def __call__(self, *_: Any) -> None:
        """Record the time since the previous step."""
        now = self._clock()
        self.seconds.append(now - self._before)
        self._before = now


@dataclass(frozen=True)
class ExecutorSettings:
    """Settings of executors; see `open_executor`. A device ignores settings that do not apply to it."""

    threads: int = 1
    determinism: Determinism = "fast"
    store: KernelStore | None = None
    instance_bytes: int = INSTANCE_BYTES
    device_bytes: int | None = None
    device_workspace: int = DEVICE_WORKSPACE
    compile: Compiling = "off"


class Executor(ABC):
    """Runner of plans on one device.

    `device` is the kind of device, by which kernels are found, followed by a colon and a number if there are several:
    cpu, cuda:0. A plan is bound to memory of its own, which `instances` keeps for the next run if there is room.
    """

    device: ClassVar[str]
    #: rank in the choice of `auto`, which takes the available device with the lowest one
    position: ClassVar[int]
    #: whether the first run of a plan is interpreted; on a GPU, deadlines need the segments of a prepared plan
    interprets_first_run: ClassVar[bool] = False
    instances: InstancePool
    #: tiers of plans, or None if nothing is compiled; then `_uncompiled_binder` binds all steps
    _tiers: ExecutionTiers | None
    _uncompiled_binder: Binder
    #: threads of a fused kernel that plans assume; 0 if the executor runs no fused kernels
    kernel_threads: int = 0
    #: whether plans split sums over several axes in two, so that fused kernels can compute the first part
    splits_sums: bool = False

    @classmethod
    def is_available(cls) -> bool:
        """Whether this machine has a device of this kind."""
        return True

    @classmethod
    @abstractmethod
    def open(cls, settings: ExecutorSettings) -> Self:
        """Open the executor with these settings. Raises RuntimeError if there is no such device."""

    @property
    def kernels(self) -> int:
        """Number of kernels that were compiled or loaded from the store."""
        return 0

    @property
    def device_bytes(self) -> int:
        """Bytes allocated on the device, if it has its own memory."""
        return 0

    @property
    @abstractmethod
    def xp(self) -> Namespace:
        """The array module."""

    def context(self, deadline: Deadline = NO_DEADLINE, workspace: Any = None) -> RunContext:
        """Create the context of a run on this device."""
        context = RunContext(self.xp, deadline, workspace, self.device.partition(":")[0])
        context.bind_plan = lambda plan: self.bind(plan, self._uncompiled_binder).run
        return context

    @abstractmethod
    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy `array` to the memory of the device."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """Allocate `nbytes` bytes, aligned to `ALIGNMENT`."""

    @abstractmethod
    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """Return the dense array of this type at `offset` in a buffer."""

    @abstractmethod
    def bind(self, plan: Plan, binder: Binder) -> ReadyPlan:
        """Bind a plan, to be run many times."""

    @abstractmethod
    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Return results as NumPy arrays, after waiting until they are complete."""

    def run(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, np.ndarray[Any, Any]],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[np.ndarray[Any, Any]]:
        """Compute the plan's results, in order. `feeds` has an array of the planned type for each of `plan.feeds`.

        A result that is a feed, or a reshape of one, is not copied, so that a large tensor can be passed on from where
        it was received. It is read-only, and may be a view of the caller's array, with which it then changes. Two
        results may share memory, too, if one is a reshape of the other. All other memory of results belongs to the
        caller alone.

        Raises MissingFeed, ShapeMismatch and DtypeMismatch for feeds that do not match the plan, DeadlineExceeded
        between steps, and errors that kernels find in their data (IndexOutOfRange).
        """
        on_device = {feed: self.to_device(feeds[feed]) for feed in plan.feeds if feed in feeds}
        results = self.to_host(self.execute(plan, on_device, deadline, watch))
        for k in plan.results_in_feeds:
            results[k] = results[k].view()
            results[k].flags.writeable = False
        return results

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """Compute as `run` does, from arrays on the device to arrays on the device; a GPU may still be computing them.

        Feeds that are not dense or not aligned are copied. A result that is a feed, or a reshape of one, is or views
        the array that was fed, or its copy. `watch` is called with every step, its operands and its result; with it,
        the plan runs step by step.
        """
        if watch is not None:
            deadline.begin_run(UNCOMPILED, reads_float32=plan.reads_float32)
            return self.interpret(plan, feeds, deadline, watch)
        return self._run_tier(plan, feeds, deadline)

    def _run_tier(
        self, plan: Plan, feeds: Mapping[Hashable, Array], deadline: Deadline, run: RunReady | None = None
    ) -> list[Array]:
        """Run the plan, or the compiled plan that replaces it, by `run` or by the prepared plan's own `run`."""
        if self._tiers is None:
            deadline.begin_run(UNCOMPILED, reads_float32=plan.reads_float32)
            return self._run_prepared(ExecutionTier(plan, self._uncompiled_binder), feeds, deadline, run)
        tier = self._tiers.current(plan, deadline)
        deadline.begin_run(tier.name, reads_float32=plan.reads_float32)
        if tier.name is UNCOMPILED and self.interprets_first_run and self._tiers.is_first(plan):
            results = self.interpret(plan, feeds, deadline, stopwatch := Stopwatch())
            self._tiers.record_run(plan, stopwatch.seconds)
            return results
        results = self._run_prepared(tier, feeds, deadline, run)
        if tier.name is not COMPILED:
            self._tiers.record_run(plan)
        return results

    def _run_prepared(
        self, tier: ExecutionTier, feeds: Mapping[Hashable, Array], deadline: Deadline, run: RunReady | None = None
    ) -> list[Array]:
        plan, binder, _ = tier
        prepared = self.instances.lend(plan) or self.bind(plan, binder)
        crash_record.begin_run(plan.digest)
        try:
            return prepared.run(feeds, deadline) if run is None else run(prepared, feeds, deadline)
        finally:
            crash_record.end_run()
            self.instances.give(plan, prepared)

    def interpret(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
        *,
        in_backward_pass: bool = False,
    ) -> list[Array]:
        """Compute as `execute` does, step by step. This is the reference for all other ways to run a plan.

        `in_backward_pass` tells that the backward pass has begun already.
        """
        slots: list[Array] = [None] * plan.slots
        for feed, slot in plan.feeds.items():
            slots[slot] = checked_feed(feeds, feed, plan.feed_types[feed])
        buffers = [self.allocate(nbytes) for nbytes in plan.buffers]
        arrays: dict[tuple[int, int], Array] = {}
        run = self.context(deadline)
        with np.errstate(all="ignore"):
            for step in plan.steps:
                deadline.check()
                if not in_backward_pass and step.origin is not None and step.origin.backward:
                    in_backward_pass = True
                    deadline.begin_backward()
                self._run_step(run, step, slots, buffers, arrays, watch)
        deadline.check()
        return [slots[i] for i in plan.results]

    def _run_step(
        self,
        run: RunContext,
        step: Step,
        slots: list[Array],
        buffers: Sequence[Buffer],
        arrays: dict[tuple[int, int], Array],
        watch: Observer | None,
    ) -> None:
        """Run a step. Steps with identical types and places, as objects, share `arrays`, which saves creating them."""
        operands = [slots[i] for i in step.operands]
        try:
            if not step.places and isinstance(step.op, View):
                out = step.op.view(run.xp, operands[0], **step.attrs)
            else:
                key = id(step.types), id(step.places)
                if key not in arrays:
                    arrays[key] = self.result(step, buffers)
                out = arrays[key]
                step.op.fill(run, operands, out, step.attrs)
        except DeadlineExceeded:
            raise  # not caused by the node
        except EngineError as error:
            raise locate_error(error, step.origin) from None
        slots[step.result] = out
        if watch is not None:
            watch(run, step, operands, out)
        for i in step.dead:
            slots[i] = None

    def condemn(self, digest: bytes) -> None:
        """Run plans with this digest without kernels from now on, because they have crashed processes."""
        if self._tiers is not None:
            self._tiers.condemn(digest)

    def settle(self) -> None:
        """Wait until nothing is being compiled."""
        if self._tiers is not None:
            self._tiers.compiler.settle()

    def close(self, timeout: float | None = None) -> bool:
        """Stop compiling, and wait for the kernel that is being compiled; return False after `timeout` seconds."""
        return self._tiers is None or self._tiers.compiler.close(timeout)

    def result(self, step: Step, buffers: Sequence[Buffer]) -> Array:
        """Place the result of a step: an array in the plan's memory, or a tuple of arrays."""
        if step.op.several:
            return tuple(
                self.place(t, buffers[k], start) for t, (k, start) in zip(step.types, step.places, strict=True)
            )
        buffer, offset = step.places[0]
        return self.place(step.types[0], buffers[buffer], offset)
