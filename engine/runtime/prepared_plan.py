"""Prepared plan: a plan made ready to run again and again, with memory of its own and calls bound to it.

What a run brings along (large feeds) and takes away (large results) is not copied: calls on it are bound anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from engine.codegen.native.native_call import NativeCall, NativeGuard, TablePlace, places_of
from engine.compiler.plan import Plan, Step
from engine.ir.limits import NO_DEADLINE, Deadline
from engine.ir.op import Array, KernelCall, View
from engine.ir.run_context import RunPlan, aligned
from engine.ir.tensor_type import Shape, TensorType
from engine.ops.common.source import Source
from engine.runtime.binding import Binder
from engine.runtime.instance_pool import ReadyPlan
from engine.runtime.interpreter import Buffer, Executor, fed
from engine.runtime.memory_layout import Lasting, Lifetimes
from engine.runtime.segments import RegionWatch, Segment, Segments, StepCalls

# Memory of large results. Most callers drop a result before they ask for the next one; then it serves again.

_NEVER = -1


class OutputBuffer:
    """A buffer whose arrays go to callers, and which is new for each run unless nobody holds any of them.

    NumPy makes every array on some memory refer to the object that owns it, so that this one's references tell
    whether there are arrays beside the prepared plan's own. Who has none cannot get one: the count never rises from
    nowhere.
    """

    def __init__(self, nbytes: int, allocate: Callable[[int], Buffer]) -> None:
        self._nbytes = nbytes
        self._allocate = allocate
        self._own = _NEVER
        self.buffer: Buffer = None

    def renew(self) -> bool:
        """Before a run: take new memory where somebody holds the old, or there is none. Whether it is new."""
        if self.buffer is not None and sys.getrefcount(self.buffer.base) == self._own:
            return False
        self.buffer, self._own = self._allocate(self._nbytes), _NEVER
        return True

    def count(self) -> None:
        """After a run, before a result is handed out: what refers to the memory now is the prepared plan's own."""
        self._own = sys.getrefcount(self.buffer.base)


# Steps on arrays that come and go with runs: native calls are pointed at them, and others are bound anew.

#: binds a step: operands and result to calls
Bind = Callable[[Step, Sequence[Array], Array], Sequence[KernelCall]]


class _Move(NamedTuple):
    """An array of a slot, one of several where `which` says so, and where native calls point at it."""

    slot: int
    which: int | None
    places: Sequence[TablePlace]


class RebindingStep:
    """A step whose operands or result do not last, in its segment."""

    __slots__ = ("_member", "_moves", "_segment", "_step")

    def __init__(self, step: Step, segment: Segment, member: StepCalls) -> None:
        self._step, self._segment, self._member = step, segment, member
        self._moves: list[_Move] | None = None

    def begin(self, slots: Sequence[Array], bind: Bind) -> None:
        """Bind it for the first time, before its segment is gathered, to the arrays that are in the slots now."""
        step = self._step
        # A view of each: two operands that happen to be one array now, need not be the next time.
        operands = [slots[i].view() for i in step.operands]
        out = slots[step.result]
        results = [array.view() for array in (out if isinstance(out, tuple) else [out])]
        calls = bind(step, operands, tuple(results) if isinstance(out, tuple) else results[0])
        moves = [_Move(i, None, places_of(array, calls)) for i, array in zip(step.operands, operands, strict=True)]
        for k, array in enumerate(results):
            moves.append(_Move(step.result, k if isinstance(out, tuple) else None, places_of(array, calls)))
        if all(map(_can_follow, calls)) and all(move.places for move in moves):
            self._moves = moves
        self._member.calls, self._member.renewed = calls, self._moves is None

    def renew(self, slots: Sequence[Array], bind: Bind) -> None:
        """Have it use the arrays that are in the slots now."""
        if self._moves is None:
            step = self._step
            self._segment.renew(self._member, bind(step, [slots[i] for i in step.operands], slots[step.result]))
            return
        for slot, which, places in self._moves:
            array = slots[slot] if which is None else slots[slot][which]
            for call, position in places:
                call.point(position, array)

    def forget(self) -> None:
        """Let go of the arrays, until `renew`."""
        if self._moves is None:
            self._segment.renew(self._member)
        else:
            for move in self._moves:
                for call, position in move.places:
                    call.forget(position)


def _can_follow(call: KernelCall) -> bool:
    """Whether a call says where it points at what."""
    function = call[0]
    return isinstance(function, NativeGuard) or (isinstance(function, NativeCall) and bool(function.arrays))


_OWN_CALLS: Final = Binder()
#: bytes of a step's arrays and calls, beside what the plan holds of it, as counted in CPython
CALL_BYTES: Final = 600


class _Intake(NamedTuple):
    """A feed, its type, its slot, and the memory that it is copied to; None where it is read as it is."""

    feed: Hashable
    planned: TensorType
    slot: int
    resident: Array | None


class _Loan(NamedTuple):
    """A result that is a feed, or a reshape of one."""

    position: int
    feed: Hashable
    shape: Shape


class PreparedPlan:
    """A plan on memory of its own, for one thread at a time.

    It refers to no feed once a run is over, nor to the plan.
    """

    def __init__(self, plan: Plan, executor: Executor, binder: Binder = _OWN_CALLS) -> None:
        self._executor = executor
        self._binder = binder
        self._slots: list[Array] = [None] * plan.slots
        self._segments = Segments()
        self._watch = RegionWatch()
        self._is_gathered = False
        #: steps on arrays that do not last, and which of them are bound or looked at with every run
        self._rebound: list[RebindingStep | Step] = []
        self._fed: list[RebindingStep | Step] = []
        self._lent: list[Step] = []
        lifetimes = Lifetimes(plan)
        self._output_buffers = [(k, OutputBuffer(plan.buffers[k], executor.allocate)) for k in sorted(lifetimes.handed)]
        sizes = [0 if k in lifetimes.handed else nbytes for k, nbytes in enumerate(plan.buffers)]
        sizes += [plan.feed_types[feed].nbytes if i in lifetimes.copied else 0 for feed, i in plan.feeds.items()]
        workspace = max(map(binder.workspace, plan.steps), default=0)
        *memory, shared = _cut(executor, [*sizes, workspace])
        self._run = executor.context(workspace=shared)
        self._inner: dict[Plan, ReadyPlan] = {}
        self._run.bind_plan, self._run.watch = binding_into(self._inner, executor, binder), self._watch
        self._nbytes = sum(plan.buffers) + workspace + lifetimes.beside + CALL_BYTES * len(plan.steps)
        self._buffers = memory[: len(plan.buffers)]
        self._intakes = [
            self._intake(lifetimes, plan, feed, own)
            for feed, own in zip(plan.feeds, memory[len(plan.buffers) :], strict=True)
        ]
        # Where floating-point warnings are off: to enter it takes a tenth of the time of NumPy's `errstate`.
        self._context = Context()
        self._context.run(np.seterr, all="ignore")
        self._context.run(self._bind_all, plan.steps, lifetimes)
        self._forth, self._back = self._segments.ways
        self._loans = _loans(plan, lifetimes)
        self._passing = sorted(lifetimes.passing)
        own = [(k, i) for k, i in enumerate(plan.results) if k not in plan.borrowed]
        self._results = [(i, lifetimes.is_copied_out(k)) for k, i in own]

    @property
    def nbytes(self) -> int:
        """With the plans that its steps run."""
        return self._nbytes + sum(inner.nbytes for inner in self._inner.values())

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """As `Executor.execute`. After an error it can be called again."""
        try:
            self._context.run(self._make, feeds, deadline)
        finally:
            self._forget()
        return self._handed_out(feeds)

    # ------------------------------------------------------------ binding

    def _intake(self, lifetimes: Lifetimes, plan: Plan, feed: Hashable, own: Buffer) -> _Intake:
        planned, slot = plan.feed_types[feed], plan.feeds[feed]
        if slot in lifetimes.copied:
            self._slots[slot] = self._executor.place(planned, own, 0)
        return _Intake(feed, planned, slot, self._slots[slot])

    def _bind_all(self, steps: Sequence[Step], lifetimes: Lifetimes) -> None:
        for step in steps:
            if step.result in lifetimes.constant:
                assert isinstance(step.op, Source)
                self._slots[step.result] = step.op.tensor(self._run, step.types[0], **step.attrs)
                continue
            lasting = lifetimes.lasting(step)
            if lifetimes.is_handed(step):
                self._lent.append(step)
            elif step.places:
                self._slots[step.result] = self._executor.result(step, self._buffers)
            if lasting is Lasting.ALWAYS:
                self._segments.add(step, self._calls(step))
            else:
                rebound = RebindingStep(step, *self._segments.add(step)) if step.places else step
                self._rebound.append(rebound)
                if lasting is Lasting.ONE_RUN:
                    self._fed.append(rebound)

    def _calls(self, step: Step) -> Sequence[KernelCall]:
        """The calls of a step; none for a view, which goes to its slot."""
        if not step.places and isinstance(step.op, View):
            self._look(step)
            return ()
        return self._bind(step, [self._slots[i] for i in step.operands], self._slots[step.result])

    def _look(self, step: Step) -> None:
        assert isinstance(step.op, View)
        self._slots[step.result] = step.op.view(self._run.xp, self._slots[step.operands[0]], **step.attrs)

    def _bind(self, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        return self._binder.calls(self._run, step, operands, out)

    # ------------------------------------------------------------ running

    def _make(self, feeds: Mapping[Hashable, Array], deadline: Deadline) -> None:
        """All but handing out the results."""
        self._take_feeds(feeds)
        self._watch.begin(deadline)
        self._run.deadline = deadline
        is_new = self._renew()
        if not self._is_gathered:
            self._gather()
        else:
            self._rebind(self._rebound if is_new else self._fed)
        for segment in self._forth:
            deadline.check()
            segment.make()
        if self._back:
            deadline.turn()
        for segment in self._back:
            deadline.check()
            segment.make()
        deadline.check()

    def _take_feeds(self, feeds: Mapping[Hashable, Array]) -> None:
        for feed, planned, slot, resident in self._intakes:
            array = fed(feeds, feed, planned)
            if resident is None:
                self._slots[slot] = array
            else:
                resident[...] = array

    def _renew(self) -> bool:
        """Take new memory for results that somebody holds. Whether there were any."""
        renewed = [k for k, output in self._output_buffers if output.renew()]
        if renewed:
            for k, output in self._output_buffers:
                self._buffers[k] = output.buffer
            for step in self._lent:
                self._slots[step.result] = self._executor.result(step, self._buffers)
        return bool(renewed)

    def _gather(self) -> None:
        """Bind what is bound to a run for the first time, and make regions of what is there then."""
        for rebound in self._rebound:
            if isinstance(rebound, Step):
                self._look(rebound)
            else:
                rebound.begin(self._slots, self._bind)
        for segment in self._segments:
            segment.gather(self._binder.runner, self._watch)
        self._is_gathered = True

    def _rebind(self, which: Sequence[RebindingStep | Step]) -> None:
        for rebound in which:
            if isinstance(rebound, Step):
                self._look(rebound)
            else:
                rebound.renew(self._slots, self._bind)

    def _forget(self) -> None:
        """Let go of what was fed."""
        self._watch.end()
        self._run.deadline = NO_DEADLINE
        for slot in self._passing:
            self._slots[slot] = None
        if self._is_gathered:
            for rebound in self._fed:
                if isinstance(rebound, RebindingStep):
                    rebound.forget()

    def _handed_out(self, feeds: Mapping[Hashable, Array]) -> list[Array]:
        for _, output in self._output_buffers:
            output.count()
        found = [self._slots[slot].copy() if copied else self._slots[slot].view() for slot, copied in self._results]
        for position, feed, shape in self._loans:
            found.insert(position, feeds[feed].reshape(shape))
        return found


def binding_into(kept: dict[Plan, ReadyPlan], executor: Executor, binder: Binder) -> Callable[[Plan], RunPlan]:
    """What binds a plan that steps run, once for all of them, on memory that is kept with the others'."""

    def bind(plan: Plan) -> RunPlan:
        if plan not in kept:
            kept[plan] = executor.bind(plan, binder)
        return kept[plan].run

    return bind


def _cut(executor: Executor, sizes: Sequence[int]) -> list[Buffer]:
    """Buffers of these sizes, cut from one allocation."""
    starts = list(accumulate(map(aligned, sizes), initial=0))
    memory = executor.allocate(starts[-1])
    return [memory[start : start + nbytes] for start, nbytes in zip(starts, sizes, strict=False)]


def _loans(plan: Plan, lifetimes: Lifetimes) -> list[_Loan]:
    feeds = {slot: feed for feed, slot in plan.feeds.items()}
    return [_Loan(k, feeds[lifetimes.roots[k].slot], plan.result_types[k].shape) for k in plan.borrowed]
