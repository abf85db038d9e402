"""Executor: runs plans on one device, step by step with any array module, or prepared and compiled.

    run → execute → the plan's tier → a prepared plan, which the instance pool lends
                  → interpret: step by step, if an observer watches, and the first time

`interpret` is the reference, and every other way of running a plan has to agree with it. It is one loop: a slot for
each result, a few buffers, and for each step the operands read from the slots, an array placed on a buffer, and the
op's own kernel. For `y = sum(x * x)` with x a feed:

    slots    0: x (fed)     1: x * x at buffer 0, byte 0     2: its sum at buffer 1, byte 0
    steps    multiply (0, 0) → 1, then sum (1) → 2, after which slot 1 is dead

To bind a plan costs more than to run it once, and many graphs come only once. So a plan runs by `interpret` the first
time. From the second time on, a prepared plan has the arrays placed and the calls bound to them, and is kept in a pool
between runs. Compiled kernels take the place of steps when the plan's tier has them (`engine.runtime.tiers`).

A plan runs on feeds of exactly the types that it was made for: anything else would be broadcast or cast in silence.
And it runs on dense, aligned feeds: kernels know of no strides but the plan's, and NumPy adds up what is misaligned in
another order. Other feeds are copied first.
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
from engine.ir.graph import at_origin
from engine.ir.op import Array, Namespace, View
from engine.ir.run_context import NO_DEADLINE, Deadline, RunContext
from engine.ir.run_report import COMPILED, UNCOMPILED
from engine.ir.tensor_type import TensorType, require_type
from engine.runtime.binding import Binder
from engine.runtime.crash_record import crash_record
from engine.runtime.tiers import Compiling, Determinism, ExecutionTier, ExecutionTiers

#: of a limited memory, idle plans take one part in so many: the rest is for running plans and other caches
IDLE_SHARE: Final = 4
#: bytes of all idle plans, if no limit is stated
INSTANCE_BYTES: Final = 1 << 28
#: idle instances of one plan: more would mean that more threads than this run it at once
MOST_OF_A_PLAN: Final = 8


class ReadyPlan(Protocol):
    """A prepared plan, for one thread at a time, and the bytes that keeping it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds: the same for as long as nobody runs it."""

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = ...) -> list[Array]:
        """Run the plan, as `Executor.execute` does."""


@dataclass(eq=False, slots=True)
class _Entry:
    """Idle instances of one plan, each with its bytes, and the bytes of all."""

    plan: weakref.ref[Plan]
    idle: list[tuple[ReadyPlan, int]] = field(default_factory=list)
    nbytes: int = 0
    retired: bool = False


class InstancePool:
    """Prepared plans that are idle, at most `bytes` in all. When a plan is collected, its instances go, too.

    Threads may share it. What was lent belongs to the borrower until it is given back.
    """

    def __init__(self, bytes: int = INSTANCE_BYTES) -> None:
        self.bytes = bytes
        #: bytes of what is idle
        self.held = 0
        self._entries: dict[Hashable, _Entry] = {}  # by the identity of their plans
        self._claims = FairEviction()
        self._gone: deque[int] = deque()
        self._lock = Lock()

    def lend(self, plan: Plan) -> ReadyPlan | None:
        """Take an idle instance of this plan, from now on the caller's; None if there is none."""
        with self._lock:
            entry = self._entries.get(id(plan))
            if entry is None or entry.plan() is not plan or not entry.idle:
                return None
            ready, nbytes = entry.idle.pop()
            entry.nbytes -= nbytes
            self.held -= nbytes
            return ready

    def give(self, plan: Plan, ready: ReadyPlan) -> None:
        """Keep an instance of this plan for the next borrower.

        If the pool is full, the owner who holds most loses what they used longest ago.
        """
        with self._lock:
            if self._gone:
                self._sweep()
            entry = self._entries.get(id(plan)) or self._entry(plan)
            nbytes = ready.nbytes
            if nbytes <= self.bytes and len(entry.idle) < MOST_OF_A_PLAN and not entry.retired:
                entry.idle.append((ready, nbytes))
                entry.nbytes += nbytes
                self.held += nbytes
            self._claims.use(id(plan), current_owner(), entry.nbytes)
            while self.held > self.bytes:
                self._drop(self._claims.let_go(by_size=True))

    def retire(self, plan: Plan) -> None:
        """Drop the instances of a plan that has been replaced; those that still run, once they are given back."""
        with self._lock:
            entry = self._entries.get(id(plan)) or self._entry(plan)
            entry.retired = True
            self.held -= entry.nbytes
            entry.nbytes = 0
            entry.idle.clear()

    def clear(self) -> None:
        """Drop all idle instances."""
        with self._lock:
            self._entries.clear()
            self._claims.clear()
            self.held = 0

    def _entry(self, plan: Plan) -> _Entry:
        key = id(plan)
        entry = self._entries[key] = _Entry(weakref.ref(plan, lambda _: self._plan_is_gone(key)))
        return entry

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)  # there is none where others still hold it
        if entry is not None:
            self.held -= entry.nbytes

    def _plan_is_gone(self, key: int) -> None:
        """Drop its entry. The garbage collector may call this anywhere, even in a thread that holds the lock."""
        self._gone.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._lock.release()

    def _sweep(self) -> None:
        while self._gone:
            key = self._gone.popleft()
            self._claims.drop(key)
            self._drop(key)


Buffer = Any  # what an executor allocates
#: bytes that kernels and libraries of a card work in, one after the other
DEVICE_WORKSPACE: Final = 64 << 20
#: looks on: (context of the run, step, operands, result)
Observer = Callable[[RunContext, Step, Sequence[Array], Array], None]
#: runs a prepared plan: (it, feeds, deadline) → results
RunReady = Callable[[ReadyPlan, Mapping[Hashable, Array], Deadline], list[Array]]


def fed(feeds: Mapping[Hashable, Array], feed: Hashable, planned: TensorType) -> Array:
    """Return the array under this key, or a dense and aligned copy of it, if it has the planned type.

    Raises MissingFeed, ShapeMismatch and DtypeMismatch.
    """
    array = feeds.get(feed)
    if array is None:
        name, node = _named(feed)
        raise MissingFeed(f"{name} is missing", node=node, expected="a feed", got="nothing")
    if array.shape != planned.shape or array.dtype != planned.dtype:
        raise _unfit(feed, TensorType.of(array), planned)
    # CuPy says nothing of alignment: what it allocates is aligned.
    lies_as_planned = array.flags.c_contiguous and getattr(array.flags, "aligned", True)
    return array if lies_as_planned else array.copy(order="C")


def _unfit(feed: Hashable, type: TensorType, planned: TensorType) -> EngineError:
    name, node = _named(feed)
    try:
        require_type(type, planned, name)
    except EngineError as error:
        error.node = node
        return error
    raise AssertionError(f"{type} is {planned}")


def _named(feed: Hashable) -> tuple[str, int | None]:
    """Name a feed in messages, and its node: leaves are fed by node, other feeds by role and node."""
    match feed:
        case int(node):
            return f"the feed of node {node}", node
        case (str(role), int(node)):
            return f"the feed of node {node} under {role}", node
        case _:
            return f"the feed {feed}", None


class Stopwatch:
    """Observer of a run (`Executor.interpret`) that notes the seconds of each step, by which kernels are ordered.

    They are processor seconds of this thread, in which other threads do not count. Each takes four bytes.
    """

    __slots__ = ("_before", "_clock", "seconds")

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        #: in the order of the steps
        self.seconds = array("f")
        self._before = clock()

    def __call__(self, *_: Any) -> None:
        """Note the time since the step before."""
        now = self._clock()
        self.seconds.append(now - self._before)
        self._before = now


@dataclass(frozen=True)
class ExecutorSettings:
    """Settings of executors; see `open_executor`. A device ignores settings that it has no use for."""

    threads: int = 1
    determinism: Determinism = "fast"
    store: KernelStore | None = None
    instance_bytes: int = INSTANCE_BYTES
    device_bytes: int | None = None
    device_workspace: int = DEVICE_WORKSPACE
    compile: Compiling = "off"


class Executor(ABC):
    """Runner of plans on one device.

    `device` is its kind, by which kernels are found, and behind a colon its number: cpu, cuda:0. A plan is bound to
    memory of its own, which `instances` keep for its next run if there is room.
    """

    device: ClassVar[str]
    #: `auto` takes the available device with the least of these
    position: ClassVar[int]
    #: whether a plan that may never run again runs step by step: a card's runs need their segments for deadlines
    begins_unbound: ClassVar[bool] = False
    instances: InstancePool
    #: the tier of each plan; None if nothing is compiled, and `_without` binds all steps
    _tiers: ExecutionTiers | None
    _without: Binder
    #: threads of a fused kernel, as plans count them; 0: it runs no fused kernels
    loop_threads: int = 0
    #: whether plans split sums over several axes in two, so that fused kernels take in the first
    splits_sums: bool = False

    @classmethod
    def is_available(cls) -> bool:
        """Whether this machine has such a device."""
        return True

    @classmethod
    @abstractmethod
    def opened(cls, settings: ExecutorSettings) -> Self:
        """Open the executor with these settings. Raises RuntimeError if there is no such device."""

    @property
    def kernels(self) -> int:
        """Number of kernels that were compiled, or loaded from the store."""
        return 0

    @property
    def device_bytes(self) -> int:
        """Bytes that are held on a device with memory of its own."""
        return 0

    @property
    @abstractmethod
    def xp(self) -> Namespace:
        """The array module."""

    def context(self, deadline: Deadline = NO_DEADLINE, workspace: Any = None) -> RunContext:
        """Make the context of runs on this device."""
        context = RunContext(self.xp, deadline, workspace, self.device.partition(":")[0])
        context.bind_plan = lambda plan: self.bind(plan, self._without).run
        return context

    @abstractmethod
    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """Copy `array` to the memory of the device."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """Allocate this many bytes, at a multiple of `ALIGNMENT`."""

    @abstractmethod
    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """Make the dense array of this type that lies at `offset` in a buffer."""

    @abstractmethod
    def bind(self, plan: Plan, binder: Binder) -> ReadyPlan:
        """Prepare a plan to run again and again."""

    @abstractmethod
    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Return results as NumPy arrays, once they are complete."""

    def run(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, np.ndarray[Any, Any]],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[np.ndarray[Any, Any]]:
        """Compute the plan's results, in its order. `feeds` has an array of the planned type for each of `plan.feeds`.

        A result that is a feed, or a reshape of one, is not copied, so that a large tensor can be sent on from where
        it came in: it is read-only, and may view the caller's array, with which it then changes. Two results may share
        memory, too, if one is a reshape of the other. All other memory of results is the caller's alone.

        Raises MissingFeed, ShapeMismatch and DtypeMismatch for feeds that were not planned, DeadlineExceeded between
        steps, and what kernels find in their data (IndexOutOfRange).
        """
        there = {feed: self.to_device(feeds[feed]) for feed in plan.feeds if feed in feeds}
        results = self.to_host(self.execute(plan, there, deadline, watch))
        for k in plan.borrowed:
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
        """Compute as `run` does, from arrays on the device to arrays that stay there; on a GPU, perhaps not done yet.

        Feeds that are not dense, or not aligned, are copied. A result that is a feed, or a reshape of one, is or views
        the very array that was fed, or its copy. `watch` is called with every step, its operands and what it wrote;
        with it, the plan runs step by step.
        """
        if watch is not None:
            deadline.ran(UNCOMPILED)
            return self.interpret(plan, feeds, deadline, watch)
        return self._run_tier(plan, feeds, deadline)

    def _run_tier(
        self, plan: Plan, feeds: Mapping[Hashable, Array], deadline: Deadline, run: RunReady | None = None
    ) -> list[Array]:
        """Run the plan, or the compiled plan in its place: by `run`, or by the `run` of the prepared plan."""
        if self._tiers is None:
            return self._run_prepared(ExecutionTier(plan, self._without), feeds, deadline, run)
        tier = self._tiers.current(plan, deadline)
        deadline.ran(tier.name)
        if tier.name is UNCOMPILED and self.begins_unbound and self._tiers.is_first(plan):
            results = self.interpret(plan, feeds, deadline, stopwatch := Stopwatch())
            self._tiers.ran(plan, stopwatch.seconds)
            return results
        results = self._run_prepared(tier, feeds, deadline, run)
        if tier.name is not COMPILED:
            self._tiers.ran(plan)
        return results

    def _run_prepared(
        self, tier: ExecutionTier, feeds: Mapping[Hashable, Array], deadline: Deadline, run: RunReady | None = None
    ) -> list[Array]:
        plan, binder, _ = tier
        prepared = self.instances.lend(plan) or self.bind(plan, binder)
        crash_record.runs(plan.digest)
        try:
            return prepared.run(feeds, deadline) if run is None else run(prepared, feeds, deadline)
        finally:
            crash_record.ran()
            self.instances.give(plan, prepared)

    def interpret(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
        *,
        turned: bool = False,
    ) -> list[Array]:
        """Compute as `execute` does, step by step: every other way of running a plan must agree with this.

        If `turned`, the backward pass has begun before.
        """
        slots: list[Array] = [None] * plan.slots
        for feed, slot in plan.feeds.items():
            slots[slot] = fed(feeds, feed, plan.feed_types[feed])
        buffers = [self.allocate(nbytes) for nbytes in plan.buffers]
        arrays: dict[tuple[int, int], Array] = {}
        run = self.context(deadline)
        with np.errstate(all="ignore"):
            for step in plan.steps:
                deadline.check()
                if not turned and step.origin is not None and step.origin.backward:
                    turned = True
                    deadline.turn()
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
        """Run a step. Steps that write the same types at the same places, as objects, share `arrays`."""
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
            raise  # the fault of no node
        except EngineError as error:
            raise at_origin(error, step.origin) from None
        slots[step.result] = out
        if watch is not None:
            watch(run, step, operands, out)
        for i in step.dead:
            slots[i] = None

    def condemn(self, digest: bytes) -> None:
        """Run plans of this digest without kernels from now on: they have ended processes."""
        if self._tiers is not None:
            self._tiers.condemn(digest)

    def settle(self) -> None:
        """Wait until nothing is being compiled."""
        if self._tiers is not None:
            self._tiers.compiler.settle()

    def close(self, timeout: float | None = None) -> bool:
        """Compile nothing more, and wait for the kernel that is being compiled; False if that took too long."""
        return self._tiers is None or self._tiers.compiler.close(timeout)

    def result(self, step: Step, buffers: Sequence[Buffer]) -> Array:
        """Place the result of a step: an array in the plan's memory, or a tuple of them."""
        if step.op.several:
            return tuple(self.place(t, buffers[k], at) for t, (k, at) in zip(step.types, step.places, strict=True))
        buffer, offset = step.places[0]
        return self.place(step.types[0], buffers[buffer], offset)
