"""Prepared plan: a plan made ready to run again and again, with memory of its own and calls bound to it.

To bind a plan means to allocate its buffers, place the arrays of all steps on them, and have every op make its calls
on these arrays: functions with their arguments, which a run then only makes, in segments
(`engine.runtime.prepared_plan`).

    binding    y = exp(x) * 2       x: copied to a resident array at each run      exp → a, multiply a → b
    running    resident[...] = feed; for each call: function(*arguments); copy b out

Small feeds and results are copied, so that calls on them stay bound. Large ones are not copied: their arrays come and
go with each run (`Lifetimes`), and the calls on them are pointed at the new arrays, or bound anew, before each run
(`RebindingStep`). A large result lies in a buffer that the caller gets, which is used again once nobody holds an array
on it (`OutputBuffer`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import length_hint
from typing import Any, Final, NamedTuple, cast

import numpy as np

from engine.codegen.native.native_call import (
    CHUNKS_PER_THREAD,
    MOST_HELPERS,
    MOST_STEP_PARTS,
    NEVER_COMES,
    NativeCall,
    NativeGuard,
    Runner,
    StepEntry,
    TablePlace,
    WatchEntry,
    joined,
    places_of,
)
from engine.compiler.plan import Plan, Step
from engine.ir.errors import DeadlineExceeded, EngineError
from engine.ir.graph import Origin, at_origin
from engine.ir.op import Array, KernelCall, View
from engine.ir.run_context import NO_DEADLINE, Deadline, RunPlan, aligned
from engine.ir.tensor_type import HostArray, Shape, TensorType
from engine.ops.common.numerics import Source
from engine.runtime.binding import Binder
from engine.runtime.crash_record import NOWHERE, crash_record, place_named
from engine.runtime.interpreter import Buffer, Executor, ReadyPlan, fed
from engine.runtime.memory_layout import Lasting, Lifetimes

# Segments of a plan: calls in a row, of which neighbouring native ones are made as one, a region.
#
# A run checks its deadline between two segments. A runner makes the calls of a region one after the other, large ones
# by several threads. The position of a failed call tells the node of an error.

#: nanoseconds of a part of a call, at a nanosecond a FLOP and a byte that is written, if the call can be divided so far
PART_NANOSECONDS: Final = 5_000_000
#: nanoseconds: more than a float of seconds is rounded by
_ROUNDING: Final = 1_000
#: calls and nanoseconds after which a segment ends
MOST_CALLS: Final = 256
MOST_NANOSECONDS: Final = 5_000_000
#: placeholder of calls that are bound with each run
_LATER: Final[KernelCall] = (lambda: None, ())


class NativeStep(NamedTuple):
    """A call that a runner can make, its estimated time, and the client's node that it comes from."""

    call: NativeCall | NativeGuard
    nanoseconds: int
    origin: Origin | None = None


class RegionWatch:
    """Words that the regions of a run check: its deadline, and the address of the byte that ends it."""

    def __init__(self) -> None:
        self._entries: HostArray = np.array([NEVER_COMES, 0], np.int64)
        self.deadline = NO_DEADLINE
        self._stop: HostArray | None = None
        self.address: int = self._entries.ctypes.data

    def begin(self, deadline: Deadline) -> None:
        """Check this deadline from now on."""
        if deadline is not self.deadline:
            self.deadline = deadline
            moment = min(deadline.at * 1e9 + _ROUNDING, NEVER_COMES)
            self._entries[WatchEntry.MOMENT] = NEVER_COMES if moment == NEVER_COMES else int(moment)
            self._stop = _memory(deadline)
            self._entries[WatchEntry.STOP] = 0 if self._stop is None else self._stop.ctypes.data

    def end(self) -> None:
        """Check nothing, and drop the deadline's memory."""
        self.begin(NO_DEADLINE)

    def ended(self) -> DeadlineExceeded:
        """Return the reason why a region has ended early."""
        try:
            self.deadline.check()
        except DeadlineExceeded as error:
            return error
        return DeadlineExceeded("nobody waits for the answer any more")


class Region:
    """Neighbouring native calls as one, for one thread at a time. It keeps the calls' arrays alive."""

    def __init__(self, runner: Runner, watch: RegionWatch, steps: Sequence[NativeStep], place: bytes = NOWHERE) -> None:
        self._runner, self._watch = runner, watch
        self._calls = [step.call for step in steps]
        self._origins = [step.origin for step in steps]
        self._steps = _step_rows(steps)
        self._place = place
        self._helpers = int(self._steps[:, StepEntry.HELPERS].max())
        self._address: int = self._steps.ctypes.data

    def __call__(self) -> None:
        """Make all calls. Raises DeadlineExceeded, or what a guard finds, with its node; then some were not made."""
        runner, count, watch = self._runner, len(self._calls), self._watch
        if self._helpers > runner.helpers:
            runner.want(self._helpers)
        first = 0
        crash_record.is_at(self._place)
        while (reached := runner.run(self._address, first, count, watch.address, runner.pool)) != count:
            if reached < 0:
                raise watch.ended()
            self._guard(reached)
            first = reached + 1

    def _guard(self, number: int) -> None:
        try:
            self._calls[number]()
        except DeadlineExceeded:
            raise  # the fault of no node
        except EngineError as error:
            raise at_origin(error, self._origins[number]) from None


def alone(steps: Sequence[NativeStep]) -> HostArray:
    """Write the words of steps for one thread, each call as one part."""
    rows = _step_rows(steps)
    rows[:, StepEntry.PARTS], rows[:, StepEntry.HELPERS] = 1, 0
    return rows


def _memory(deadline: Deadline) -> HostArray | None:
    """Find the byte that ends a run; None if it cannot change, or is no memory."""
    if isinstance(deadline.stop, bytes):
        return None
    stop: Any = deadline.stop
    try:
        return np.frombuffer(stop, np.uint8)
    except (TypeError, ValueError):
        return None


def _step_rows(steps: Sequence[NativeStep]) -> HostArray:
    rows: HostArray = np.zeros((len(steps), StepEntry.SIZE), np.int64)
    for row, (call, nanoseconds, _) in zip(rows, steps, strict=True):
        if isinstance(call, NativeGuard):
            row[StepEntry.TABLE] = call.word.ctypes.data
            continue
        threads = min(len(call.entries), MOST_HELPERS + 1)
        parts = max(CHUNKS_PER_THREAD * threads if threads > 1 else 1, nanoseconds // PART_NANOSECONDS)
        row[StepEntry.FUNCTION] = call.address
        row[StepEntry.ITEMS] = call.items
        row[StepEntry.TABLE] = call.entries.ctypes.data
        row[StepEntry.STRIDE] = call.entries.strides[0]
        row[StepEntry.PARTS] = min(parts, call.items, MOST_STEP_PARTS)
        row[StepEntry.HELPERS] = threads - 1
        row[StepEntry.NANOSECONDS] = nanoseconds
    return rows


@dataclass(eq=False, slots=True)
class StepCalls:
    """A step of a segment. Its calls stay; or they are `renewed` with each run, and then made as one."""

    calls: Sequence[KernelCall]
    origin: Origin | None
    nanoseconds: int
    renewed: bool = False
    #: position of a renewed step among the calls of its segment
    position: int = 0


class Segment:
    """Steps in their order, and their calls: regions, and single calls with the nodes that they come from."""

    __slots__ = ("_members", "_origins", "calls", "size")

    def __init__(self) -> None:
        self._members: list[StepCalls] = []
        #: number of calls of the steps
        self.size = 0
        #: empty until all steps are there
        self.calls: list[KernelCall] = []
        self._origins: list[Origin | None] = []

    def add(self, member: StepCalls) -> None:
        """Append a step, whose calls may be filled in later."""
        self._members.append(member)
        self.size += max(1, len(member.calls))

    def renew(self, member: StepCalls, calls: Sequence[KernelCall] = (_LATER,)) -> None:
        """Replace the calls of a renewed step; by default, drop them."""
        self.calls[member.position] = joined(calls)

    def gather(self, runner: Runner | None, watch: RegionWatch) -> None:
        """Make regions of neighbouring native calls, if there is a runner. No step is added afterwards."""

        def is_native(each: tuple[StepCalls, KernelCall]) -> bool:
            member, (function, _) = each
            return runner is not None and not member.renewed and isinstance(function, NativeCall | NativeGuard)

        every = (
            (member, call)
            for member in self._members
            for call in ((joined(member.calls),) if member.renewed else member.calls)
        )
        for are_native, group in groupby(every, is_native):
            if are_native:
                assert runner is not None
                native = [*group]
                steps = [
                    NativeStep(cast("NativeCall", call[0]), member.nanoseconds, member.origin)
                    for member, call in native
                ]
                origins = [member.origin for member, _ in native if member.origin is not None]
                nodes = dict.fromkeys(f"{origin.op} (node {origin.node})" for origin in origins)
                self._append((Region(runner, watch, steps, place_named(", ".join(nodes))), ()), None)
            else:
                for member, call in group:
                    member.position = len(self.calls)
                    self._append(call, member.origin)
        for member in self._members:
            member.calls = ()
        self._members.clear()

    def make(self) -> None:
        """Make the calls. Raises what a kernel finds in its data, with its node."""
        remaining = iter(self.calls)
        try:
            for function, arguments in remaining:
                function(*arguments)
        except DeadlineExceeded:
            raise  # the fault of no node
        except EngineError as error:
            origin = self._origins[len(self.calls) - length_hint(remaining) - 1]
            raise at_origin(error, origin) from None

    def _append(self, call: KernelCall, origin: Origin | None) -> None:
        self.calls.append(call)
        self._origins.append(origin)


class Segments(list[Segment]):
    """Segments of a plan, a few milliseconds each, so that a run notices soon that it is late.

    The backward pass, from the first step that differentiation wrote, begins with a segment of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = 0
        self._turn: int | None = None

    @property
    def ways(self) -> tuple[list[Segment], list[Segment]]:
        """Segments of the forward pass and of the backward pass."""
        return self[: self._turn], [] if self._turn is None else self[self._turn :]

    def add(self, step: Step, calls: Sequence[KernelCall] = ()) -> tuple[Segment, StepCalls]:
        """Append a step with its calls, or fill these in before the segment is gathered."""
        if self._turn is None and step.origin is not None and step.origin.backward:
            self._turn, self._left = len(self), 0
        if self._left <= 0 or self[-1].size >= MOST_CALLS:
            self.append(Segment())
            self._left = MOST_NANOSECONDS
        nanoseconds = step.flops + step.types[0].nbytes * len(step.types)
        self._left -= nanoseconds
        member = StepCalls(calls, step.origin, nanoseconds)
        self[-1].add(member)
        return self[-1], member


#: binds a step: operands and result to calls
Bind = Callable[[Step, Sequence[Array], Array], Sequence[KernelCall]]
#: no number of references
_NEVER: Final = -1
_OWN_CALLS: Final = Binder()
#: bytes of a step's arrays and calls, beside what the plan holds of it, as counted in CPython
CALL_BYTES: Final = 600


class OutputBuffer:
    """A buffer whose arrays go to callers, new for each run unless nobody holds any of them.

    Every NumPy array refers to the owner of its memory, so that the owner's reference count tells whether there are
    arrays beside the prepared plan's own. It cannot rise by itself: nobody without an array can get one.
    """

    def __init__(self, nbytes: int, allocate: Callable[[int], Buffer]) -> None:
        self._nbytes = nbytes
        self._allocate = allocate
        self._own = _NEVER
        self.buffer: Buffer = None

    def renew(self) -> bool:
        """Take new memory before a run if somebody holds the old, or there is none. Returns whether it is new."""
        if self.buffer is not None and sys.getrefcount(self.buffer.base) == self._own:
            return False
        self.buffer, self._own = self._allocate(self._nbytes), _NEVER
        return True

    def count(self) -> None:
        """Count the prepared plan's own references: after a run, before a result is handed out."""
        self._own = sys.getrefcount(self.buffer.base)


class _Move(NamedTuple):
    """An array of a slot, the number `which` of a tuple unless None, and the places of calls that point at it."""

    slot: int
    which: int | None
    places: Sequence[TablePlace]


class RebindingStep:
    """A step on arrays that come and go with runs: native calls are pointed at them, other calls are bound anew."""

    __slots__ = ("_member", "_moves", "_segment", "_step")

    def __init__(self, step: Step, segment: Segment, member: StepCalls) -> None:
        self._step, self._segment, self._member = step, segment, member
        self._moves: list[_Move] | None = None

    def begin(self, slots: Sequence[Array], bind: Bind) -> None:
        """Bind it for the first time, before its segment is gathered, to the arrays in the slots."""
        step = self._step
        # A view of each: two operands that are one array now may be two the next time.
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
        """Use the arrays that are in the slots now."""
        if self._moves is None:
            step = self._step
            self._segment.renew(self._member, bind(step, [slots[i] for i in step.operands], slots[step.result]))
            return
        for slot, which, places in self._moves:
            array = slots[slot] if which is None else slots[slot][which]
            for call, position in places:
                call.point(position, array)

    def forget(self) -> None:
        """Drop the arrays, until `renew`."""
        if self._moves is None:
            self._segment.renew(self._member)
        else:
            for move in self._moves:
                for call, position in move.places:
                    call.forget(position)


def _can_follow(call: KernelCall) -> bool:
    """Whether a call can be pointed at other arrays."""
    function = call[0]
    return isinstance(function, NativeGuard) or (isinstance(function, NativeCall) and bool(function.arrays))


class _Intake(NamedTuple):
    """A feed, its type, its slot, and the array that it is copied to; None if it is read in place."""

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
        #: steps on arrays that do not last, and those of them that are bound or viewed anew with every run
        self._rebound: list[RebindingStep | Step] = []
        self._fed: list[RebindingStep | Step] = []
        self._lent: list[Step] = []
        lifetimes = Lifetimes(plan)
        self._output_buffers = [
            (k, OutputBuffer(plan.buffers[k], executor.allocate)) for k in sorted(lifetimes.handed_out)
        ]
        sizes = [0 if k in lifetimes.handed_out else nbytes for k, nbytes in enumerate(plan.buffers)]
        sizes += [plan.feed_types[feed].nbytes if i in lifetimes.copied else 0 for feed, i in plan.feeds.items()]
        workspace = max(map(binder.workspace, plan.steps), default=0)
        *memory, shared = _cut(executor, [*sizes, workspace])
        self._run = executor.context(workspace=shared)
        self._inner: dict[Plan, ReadyPlan] = {}
        self._run.bind_plan, self._run.watch = binding_into(self._inner, executor, binder), self._watch
        self._nbytes = sum(plan.buffers) + workspace + lifetimes.beside + CALL_BYTES * len(plan.steps)
        self._buffers = memory[: len(plan.buffers)]
        self._intakes = list[_Intake]()
        for (feed, slot), own in zip(plan.feeds.items(), memory[len(plan.buffers) :], strict=True):
            if slot in lifetimes.copied:
                self._slots[slot] = executor.place(plan.feed_types[feed], own, 0)
            self._intakes.append(_Intake(feed, plan.feed_types[feed], slot, self._slots[slot]))
        # A context without floating-point warnings: to enter it takes a tenth of the time of NumPy's `errstate`.
        self._context = Context()
        self._context.run(np.seterr, all="ignore")
        self._context.run(self._bind_all, plan.steps, lifetimes)
        self._forth, self._back = self._segments.ways
        self._loans = _loans(plan, lifetimes)
        self._passing = sorted(lifetimes.transient)
        own = [(k, i) for k, i in enumerate(plan.results) if k not in plan.borrowed]
        self._results = [(i, lifetimes.is_copied_out(k)) for k, i in own]

    @property
    def nbytes(self) -> int:
        """Bytes that it holds, with the plans that its steps run."""
        return self._nbytes + sum(inner.nbytes for inner in self._inner.values())

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """Run the plan, as `Executor.execute` does. After an error it can be called again."""
        try:
            self._context.run(self._make, feeds, deadline)
        finally:
            self._forget()
        return self._handed_out(feeds)

    def _bind_all(self, steps: Sequence[Step], lifetimes: Lifetimes) -> None:
        for step in steps:
            if step.result in lifetimes.constant:
                assert isinstance(step.op, Source)
                self._slots[step.result] = step.op.tensor(self._run, step.types[0], **step.attrs)
                continue
            lasting = lifetimes.lasting(step)
            if lifetimes.is_handed_out(step):
                self._lent.append(step)
            elif step.places:
                self._slots[step.result] = self._executor.result(step, self._buffers)
            if lasting is Lasting.ALWAYS:
                if not step.places and isinstance(step.op, View):
                    self._look(step)
                    self._segments.add(step)
                else:
                    operands = [self._slots[i] for i in step.operands]
                    self._segments.add(step, self._bind(step, operands, self._slots[step.result]))
            else:
                rebound = RebindingStep(step, *self._segments.add(step)) if step.places else step
                self._rebound.append(rebound)
                if lasting is Lasting.ONE_RUN:
                    self._fed.append(rebound)

    def _look(self, step: Step) -> None:
        assert isinstance(step.op, View)
        self._slots[step.result] = step.op.view(self._run.xp, self._slots[step.operands[0]], **step.attrs)

    def _bind(self, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        return self._binder.calls(self._run, step, operands, out)

    def _make(self, feeds: Mapping[Hashable, Array], deadline: Deadline) -> None:
        self._take_feeds(feeds)
        self._watch.begin(deadline)
        self._run.deadline = deadline
        is_new = self._renew()
        if not self._is_gathered:
            self._gather()
        else:
            for rebound in self._rebound if is_new else self._fed:
                if isinstance(rebound, Step):
                    self._look(rebound)
                else:
                    rebound.renew(self._slots, self._bind)
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
        """Take new memory for results that somebody holds. Returns whether there were any."""
        renewed = [k for k, output in self._output_buffers if output.renew()]
        if renewed:
            for k, output in self._output_buffers:
                self._buffers[k] = output.buffer
            for step in self._lent:
                self._slots[step.result] = self._executor.result(step, self._buffers)
        return bool(renewed)

    def _gather(self) -> None:
        """Bind steps on arrays of a run for the first time, and make regions of the calls."""
        for rebound in self._rebound:
            if isinstance(rebound, Step):
                self._look(rebound)
            else:
                rebound.begin(self._slots, self._bind)
        for segment in self._segments:
            segment.gather(self._binder.runner, self._watch)
        self._is_gathered = True

    def _forget(self) -> None:
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
        results = [self._slots[slot].copy() if copied else self._slots[slot].view() for slot, copied in self._results]
        for position, feed, shape in self._loans:
            results.insert(position, feeds[feed].reshape(shape))
        return results


def binding_into(kept: dict[Plan, ReadyPlan], executor: Executor, binder: Binder) -> Callable[[Plan], RunPlan]:
    """Make a function that binds the plans that steps run, each once, and keeps them in `kept`."""

    def bind(plan: Plan) -> RunPlan:
        if plan not in kept:
            kept[plan] = executor.bind(plan, binder)
        return kept[plan].run

    return bind


def _cut(executor: Executor, sizes: Sequence[int]) -> list[Buffer]:
    starts = list(accumulate(map(aligned, sizes), initial=0))
    memory = executor.allocate(starts[-1])
    return [memory[start : start + nbytes] for start, nbytes in zip(starts, sizes, strict=False)]


def _loans(plan: Plan, lifetimes: Lifetimes) -> list[_Loan]:
    feeds = {slot: feed for feed, slot in plan.feeds.items()}
    return [_Loan(k, feeds[lifetimes.roots[k].slot], plan.result_types[k].shape) for k in plan.borrowed]
