"""Prepared plans: plans with memory of their own and calls bound to it, ready to run many times.

To bind a plan means to allocate its buffers, place the arrays of all steps on them, and let every op prepare its calls
on these arrays, as functions with arguments. A run then only copies feeds and makes these calls, in segments:

    binding    y = exp(x) * 2       x: copied to a resident array at each run      exp → a, multiply a → b
    running    resident[...] = feed; for each call: function(*arguments); copy b out

Small feeds and results are copied, so that calls on them stay bound. Large ones are not copied. Their arrays change
with each run (`Lifetimes`), so the calls on them are pointed to the new arrays, or bound again, before each run
(`RebindingStep`). A large result lies in a buffer that is handed to the caller, and reused when nobody holds an array
on it any more (`OutputBuffer`).
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
    join_calls,
    places_of,
)
from engine.compiler.plan import Plan, Step
from engine.ir.errors import DeadlineExceeded, EngineError
from engine.ir.graph import Origin, locate_error
from engine.ir.op import Array, KernelCall, View
from engine.ir.run_context import NO_DEADLINE, Deadline, RunPlan, aligned
from engine.ir.tensor_type import HostArray, Shape, TensorType
from engine.ops.common.numerics import NullaryOp
from engine.runtime.binding import Binder
from engine.runtime.crash_record import UNKNOWN_PLACE, crash_record, place_named
from engine.runtime.interpreter import Buffer, Executor, ReadyPlan, checked_feed
from engine.runtime.memory_layout import Lasting, Lifetimes

# Segments are runs of consecutive calls. The deadline is checked between two segments. Within a segment, consecutive
# native calls form a region, which a native runner executes without returning to Python, using several threads for
# large calls. If a call fails, its position identifies the node for the error.

#: nanoseconds of one part of a divisible call, estimated as one per FLOP and per byte written
PART_NANOSECONDS: Final = 5_000_000
#: nanoseconds by which the rounding of a float of seconds cannot exceed a deadline
_ROUNDING: Final = 1_000
#: maximum calls and nanoseconds of a segment
MOST_CALLS: Final = 256
MOST_NANOSECONDS: Final = 5_000_000
#: placeholder for calls that are bound at each run
_PLACEHOLDER_CALL: Final[KernelCall] = (lambda: None, ())


class NativeStep(NamedTuple):
    """A call for the native runner, its estimated time, and the client's node that it belongs to."""

    call: NativeCall | NativeGuard
    nanoseconds: int
    origin: Origin | None = None


class RegionWatch:
    """Memory that regions check during a run: the deadline, and the address of a byte that cancels the run."""

    def __init__(self) -> None:
        self._entries: HostArray = np.array([NEVER_COMES, 0], np.int64)
        self.deadline = NO_DEADLINE
        self._stop: HostArray | None = None
        self.address: int = self._entries.ctypes.data

    def begin(self, deadline: Deadline) -> None:
        """Check this deadline from now on."""
        if deadline is not self.deadline:
            self.deadline = deadline
            nanoseconds = min(deadline.time * 1e9 + _ROUNDING, NEVER_COMES)
            self._entries[WatchEntry.MOMENT] = NEVER_COMES if nanoseconds == NEVER_COMES else int(nanoseconds)
            self._stop = _memory(deadline)
            self._entries[WatchEntry.STOP] = 0 if self._stop is None else self._stop.ctypes.data

    def end(self) -> None:
        """Check nothing from now on, and release the deadline's memory."""
        self.begin(NO_DEADLINE)

    def ended(self) -> DeadlineExceeded:
        """Return the reason why a region has ended early."""
        try:
            self.deadline.check()
        except DeadlineExceeded as error:
            return error
        return DeadlineExceeded("the client no longer waits for the response")


class Region:
    """Consecutive native calls run as one, by one thread at a time. It keeps the arrays of the calls alive."""

    def __init__(
        self, runner: Runner, watch: RegionWatch, steps: Sequence[NativeStep], place: bytes = UNKNOWN_PLACE
    ) -> None:
        self._runner, self._watch = runner, watch
        self._calls = [step.call for step in steps]
        self._origins = [step.origin for step in steps]
        self._steps = _step_rows(steps)
        self._place = place
        self._helpers = int(self._steps[:, StepEntry.HELPERS].max())
        self._address: int = self._steps.ctypes.data

    def __call__(self) -> None:
        """Make all calls.

        Raises DeadlineExceeded, or an error found by a guard, with its node. Later calls are not made then.
        """
        runner, count, watch = self._runner, len(self._calls), self._watch
        if self._helpers > runner.helpers:
            runner.start_helpers(self._helpers)
        first = 0
        crash_record.set_place(self._place)
        # The runner returns at a guard whose word is set, for Python to raise its error or to run a fallback.
        while (position := runner.run(self._address, first, count, watch.address, runner.pool)) != count:
            if position < 0:
                raise watch.ended()
            self._guard(position)
            first = position + 1

    def _guard(self, number: int) -> None:
        try:
            self._calls[number]()
        except DeadlineExceeded:
            raise  # not caused by a node
        except EngineError as error:
            raise locate_error(error, self._origins[number]) from None


def single_thread_rows(steps: Sequence[NativeStep]) -> HostArray:
    """Return the rows of steps for the runner in one thread, with each call as one part."""
    rows = _step_rows(steps)
    rows[:, StepEntry.PARTS], rows[:, StepEntry.HELPERS] = 1, 0
    return rows


def _memory(deadline: Deadline) -> HostArray | None:
    """Return the byte that cancels a run, or None if it cannot change or is not in memory."""
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
    """The calls of a step in a segment. If `renewed`, they are bound again at each run, and made as one call."""

    calls: Sequence[KernelCall]
    origin: Origin | None
    nanoseconds: int
    renewed: bool = False
    #: index of a renewed step among the calls of its segment
    position: int = 0


class Segment:
    """Consecutive steps and their calls: regions, and single calls with the nodes that they belong to."""

    __slots__ = ("_members", "_origins", "calls", "size")

    def __init__(self) -> None:
        self._members: list[StepCalls] = []
        #: number of calls of all steps
        self.size = 0
        #: empty until `build_calls`
        self.calls: list[KernelCall] = []
        self._origins: list[Origin | None] = []

    def add(self, step_calls: StepCalls) -> None:
        """Append a step. Its calls may be set later."""
        self._members.append(step_calls)
        self.size += max(1, len(step_calls.calls))

    def renew(self, step_calls: StepCalls, calls: Sequence[KernelCall] = (_PLACEHOLDER_CALL,)) -> None:
        """Replace the calls of a renewed step, or drop them by default."""
        self.calls[step_calls.position] = join_calls(calls)

    def build_calls(self, runner: Runner | None, watch: RegionWatch) -> None:
        """Build the list of calls. If there is a runner, merge consecutive native ones to regions.

        No step can be added afterwards.
        """

        def is_native(item: tuple[StepCalls, KernelCall]) -> bool:
            step_calls, (function, _) = item
            return runner is not None and not step_calls.renewed and isinstance(function, NativeCall | NativeGuard)

        all_calls = (
            (step_calls, call)
            for step_calls in self._members
            for call in ((join_calls(step_calls.calls),) if step_calls.renewed else step_calls.calls)
        )
        for are_native, group in groupby(all_calls, is_native):
            if are_native:
                assert runner is not None
                native = [*group]
                steps = [
                    NativeStep(cast("NativeCall", call[0]), step_calls.nanoseconds, step_calls.origin)
                    for step_calls, call in native
                ]
                origins = [step_calls.origin for step_calls, _ in native if step_calls.origin is not None]
                nodes = dict.fromkeys(f"{origin.op} (node {origin.node})" for origin in origins)
                self._append((Region(runner, watch, steps, place_named(", ".join(nodes))), ()), None)
            else:
                for step_calls, call in group:
                    step_calls.position = len(self.calls)
                    self._append(call, step_calls.origin)
        # Regions hold the calls from now on: drop the references, which would keep rebound arrays alive.
        for step_calls in self._members:
            step_calls.calls = ()
        self._members.clear()

    def make(self) -> None:
        """Make the calls. Raises errors that kernels find in their data, with their node."""
        remaining = iter(self.calls)
        try:
            for function, arguments in remaining:
                function(*arguments)
        except DeadlineExceeded:
            raise  # not caused by a node
        except EngineError as error:
            # The position of the failed call follows from the calls that remain, which spares a counter in the loop.
            origin = self._origins[len(self.calls) - length_hint(remaining) - 1]
            raise locate_error(error, origin) from None

    def _append(self, call: KernelCall, origin: Origin | None) -> None:
        self.calls.append(call)
        self._origins.append(origin)


class Segments(list[Segment]):
    """Segments of a plan, of a few milliseconds each, so that a run notices soon that its deadline has passed.

    The backward pass, from the first step that differentiation wrote, begins with a new segment.
    """

    def __init__(self) -> None:
        super().__init__()
        self._remaining_nanoseconds = 0
        self._turn: int | None = None

    @property
    def passes(self) -> tuple[list[Segment], list[Segment]]:
        """Segments of the forward pass and of the backward pass."""
        return self[: self._turn], [] if self._turn is None else self[self._turn :]

    def add(self, step: Step, calls: Sequence[KernelCall] = ()) -> tuple[Segment, StepCalls]:
        """Append a step with its calls, which may also be set before the segment's calls are built."""
        if self._turn is None and step.origin is not None and step.origin.backward:
            self._turn, self._remaining_nanoseconds = len(self), 0
        if self._remaining_nanoseconds <= 0 or self[-1].size >= MOST_CALLS:
            self.append(Segment())
            self._remaining_nanoseconds = MOST_NANOSECONDS
        nanoseconds = step.flops + step.types[0].nbytes * len(step.types)
        self._remaining_nanoseconds -= nanoseconds
        step_calls = StepCalls(calls, step.origin, nanoseconds)
        self[-1].add(step_calls)
        return self[-1], step_calls


#: binds a step to calls on its operands and result
Bind = Callable[[Step, Sequence[Array], Array], Sequence[KernelCall]]
#: value for an unknown number of references
_UNKNOWN_REFERENCES: Final = -1
_DEFAULT_BINDER: Final = Binder()
#: bytes in CPython of a step's array objects and calls, without the step itself
CALL_BYTES: Final = 600


class OutputBuffer:
    """A buffer that is handed to callers, and replaced at the next run if a caller still holds an array on it.

    Every NumPy array refers to the owner of its memory. So the owner's reference count tells whether there are arrays
    other than the prepared plan's own. It cannot rise again later, because new views can only be made from existing
    arrays.
    """

    def __init__(self, nbytes: int, allocate: Callable[[int], Buffer]) -> None:
        self._nbytes = nbytes
        self._allocate = allocate
        self._own_references = _UNKNOWN_REFERENCES
        self.buffer: Buffer = None

    def renew(self) -> bool:
        """Allocate new memory for a run if somebody holds the old one, or if there is none. Return whether it did."""
        if self.buffer is not None and sys.getrefcount(self.buffer.base) == self._own_references:
            return False
        self.buffer, self._own_references = self._allocate(self._nbytes), _UNKNOWN_REFERENCES
        return True

    def count(self) -> None:
        """Record the number of the prepared plan's own references: after a run, before results are handed out."""
        self._own_references = sys.getrefcount(self.buffer.base)


class _Move(NamedTuple):
    """An array of a slot (element `which` if the slot has a tuple), and the places in calls that point to it."""

    slot: int
    which: int | None
    places: Sequence[TablePlace]


class RebindingStep:
    """A step on arrays that change between runs: native calls are pointed to the new arrays, others bound again."""

    __slots__ = ("_member", "_moves", "_segment", "_step")

    def __init__(self, step: Step, segment: Segment, step_calls: StepCalls) -> None:
        self._step, self._segment, self._member = step, segment, step_calls
        self._moves: list[_Move] | None = None

    def begin(self, slots: Sequence[Array], bind: Bind) -> None:
        """Bind the step to the arrays in the slots for the first time, before the segment's calls are built."""
        step = self._step
        # Make a view of each, to tell operands apart that are one array now, but may be different ones in the next run.
        operands = [slots[i].view() for i in step.operands]
        out = slots[step.result]
        results = [array.view() for array in (out if isinstance(out, tuple) else [out])]
        calls = bind(step, operands, tuple(results) if isinstance(out, tuple) else results[0])
        moves = [_Move(i, None, places_of(array, calls)) for i, array in zip(step.operands, operands, strict=True)]
        for k, array in enumerate(results):
            moves.append(_Move(step.result, k if isinstance(out, tuple) else None, places_of(array, calls)))
        if all(map(_can_be_repointed, calls)) and all(move.places for move in moves):
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
        """Drop references to the arrays, until `renew`."""
        if self._moves is None:
            self._segment.renew(self._member)
        else:
            for move in self._moves:
                for call, position in move.places:
                    call.release(position)


def _can_be_repointed(call: KernelCall) -> bool:
    """Whether a call can be pointed to other arrays."""
    function = call[0]
    return isinstance(function, NativeGuard) or (isinstance(function, NativeCall) and bool(function.arrays))


class _Intake(NamedTuple):
    """A feed, its type and slot, and the array that it is copied to, or None if it is read in place."""

    feed: Hashable
    planned: TensorType
    slot: int
    resident: Array | None


class _BorrowedResult(NamedTuple):
    """A result that is a feed, or a reshape of one."""

    position: int
    feed: Hashable
    shape: Shape


class PreparedPlan:
    """A plan bound to memory of its own, for one thread at a time.

    Between runs, it refers neither to feeds nor to the plan.
    """

    def __init__(self, plan: Plan, executor: Executor, binder: Binder = _DEFAULT_BINDER) -> None:
        self._executor = executor
        self._binder = binder
        self._slots: list[Array] = [None] * plan.slots
        self._segments = Segments()
        self._watch = RegionWatch()
        self._has_calls = False
        #: steps on arrays that may change, and those of them whose arrays change with every run
        self._rebound: list[RebindingStep | Step] = []
        self._rebound_each_run: list[RebindingStep | Step] = []
        self._handed_out_steps: list[Step] = []
        lifetimes = Lifetimes(plan)
        self._output_buffers = [
            (k, OutputBuffer(plan.buffers[k], executor.allocate)) for k in sorted(lifetimes.handed_out)
        ]
        sizes = [0 if k in lifetimes.handed_out else nbytes for k, nbytes in enumerate(plan.buffers)]
        sizes += [plan.feed_types[feed].nbytes if i in lifetimes.copied else 0 for feed, i in plan.feeds.items()]
        workspace = max(map(binder.workspace, plan.steps), default=0)
        *memory, shared = _allocate_together(executor, [*sizes, workspace])
        self._run = executor.context(workspace=shared)
        self._inner: dict[Plan, ReadyPlan] = {}
        self._run.bind_plan, self._run.stop_flag = binding_into(self._inner, executor, binder), self._watch
        self._nbytes = sum(plan.buffers) + workspace + lifetimes.extra_bytes + CALL_BYTES * len(plan.steps)
        self._buffers = memory[: len(plan.buffers)]
        self._intakes = list[_Intake]()
        for (feed, slot), resident_memory in zip(plan.feeds.items(), memory[len(plan.buffers) :], strict=True):
            if slot in lifetimes.copied:
                self._slots[slot] = executor.place(plan.feed_types[feed], resident_memory, 0)
            self._intakes.append(_Intake(feed, plan.feed_types[feed], slot, self._slots[slot]))
        # A context without floating-point warnings: entering it takes a tenth of the time of NumPy's `errstate`.
        self._context = Context()
        self._context.run(np.seterr, all="ignore")
        self._context.run(self._bind_all, plan.steps, lifetimes)
        self._forward_segments, self._backward_segments = self._segments.passes
        self._borrowed_results = _borrowed_results(plan, lifetimes)
        self._transient_slots = sorted(lifetimes.transient)
        own_results = [(k, i) for k, i in enumerate(plan.results) if k not in plan.results_in_feeds]
        self._results = [(i, lifetimes.is_copied_out(k)) for k, i in own_results]

    @property
    def nbytes(self) -> int:
        """Bytes of the plan, including the plans that its steps run."""
        return self._nbytes + sum(inner.nbytes for inner in self._inner.values())

    def run(self, feeds: Mapping[Hashable, Array], deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """Run the plan as `Executor.execute` does. It can be run again after an error."""
        try:
            self._context.run(self._make, feeds, deadline)
        finally:
            self._forget()
        return self._collect_results(feeds)

    def _bind_all(self, steps: Sequence[Step], lifetimes: Lifetimes) -> None:
        for step in steps:
            if step.result in lifetimes.constant:
                assert isinstance(step.op, NullaryOp)
                self._slots[step.result] = step.op.tensor(self._run, step.types[0], **step.attrs)
                continue
            lasting = lifetimes.lasting(step)
            if lifetimes.is_handed_out(step):
                self._handed_out_steps.append(step)
            elif step.places:
                self._slots[step.result] = self._executor.result(step, self._buffers)
            if lasting is Lasting.ALWAYS:
                if not step.places and isinstance(step.op, View):
                    self._bind_view(step)
                    self._segments.add(step)
                else:
                    operands = [self._slots[i] for i in step.operands]
                    self._segments.add(step, self._bind(step, operands, self._slots[step.result]))
            else:
                rebound = RebindingStep(step, *self._segments.add(step)) if step.places else step
                self._rebound.append(rebound)
                if lasting is Lasting.ONE_RUN:
                    self._rebound_each_run.append(rebound)

    def _bind_view(self, step: Step) -> None:
        assert isinstance(step.op, View)
        self._slots[step.result] = step.op.view(self._run.xp, self._slots[step.operands[0]], **step.attrs)

    def _bind(self, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        return self._binder.calls(self._run, step, operands, out)

    def _make(self, feeds: Mapping[Hashable, Array], deadline: Deadline) -> None:
        self._take_feeds(feeds)
        self._watch.begin(deadline)
        self._run.deadline = deadline
        is_new = self._renew()
        if not self._has_calls:
            self._build_calls()
        else:
            for rebound in self._rebound if is_new else self._rebound_each_run:
                if isinstance(rebound, Step):
                    self._bind_view(rebound)
                else:
                    rebound.renew(self._slots, self._bind)
        for segment in self._forward_segments:
            deadline.check()
            segment.make()
        if self._backward_segments:
            deadline.begin_backward()
        for segment in self._backward_segments:
            deadline.check()
            segment.make()
        deadline.check()

    def _take_feeds(self, feeds: Mapping[Hashable, Array]) -> None:
        for feed, planned, slot, resident in self._intakes:
            array = checked_feed(feeds, feed, planned)
            if resident is None:
                self._slots[slot] = array
            else:
                resident[...] = array

    def _renew(self) -> bool:
        """Allocate new memory for results that callers hold. Return whether there were any."""
        renewed = [k for k, output in self._output_buffers if output.renew()]
        if renewed:
            for k, output in self._output_buffers:
                self._buffers[k] = output.buffer
            for step in self._handed_out_steps:
                self._slots[step.result] = self._executor.result(step, self._buffers)
        return bool(renewed)

    def _build_calls(self) -> None:
        """Bind steps whose arrays change for the first time, and build the calls of all segments."""
        for rebound in self._rebound:
            if isinstance(rebound, Step):
                self._bind_view(rebound)
            else:
                rebound.begin(self._slots, self._bind)
        for segment in self._segments:
            segment.build_calls(self._binder.runner, self._watch)
        self._has_calls = True

    def _forget(self) -> None:
        self._watch.end()
        self._run.deadline = NO_DEADLINE
        for slot in self._transient_slots:
            self._slots[slot] = None
        if self._has_calls:
            for rebound in self._rebound_each_run:
                if isinstance(rebound, RebindingStep):
                    rebound.forget()

    def _collect_results(self, feeds: Mapping[Hashable, Array]) -> list[Array]:
        for _, output in self._output_buffers:
            output.count()
        results = [self._slots[slot].copy() if copied else self._slots[slot].view() for slot, copied in self._results]
        for position, feed, shape in self._borrowed_results:
            results.insert(position, feeds[feed].reshape(shape))
        return results


def binding_into(cache: dict[Plan, ReadyPlan], executor: Executor, binder: Binder) -> Callable[[Plan], RunPlan]:
    """Return a function that binds plans, each once, and caches them in `cache`."""

    def bind(plan: Plan) -> RunPlan:
        if plan not in cache:
            cache[plan] = executor.bind(plan, binder)
        return cache[plan].run

    return bind


def _allocate_together(executor: Executor, sizes: Sequence[int]) -> list[Buffer]:
    starts = list(accumulate(map(aligned, sizes), initial=0))
    memory = executor.allocate(starts[-1])
    return [memory[start : start + nbytes] for start, nbytes in zip(starts, sizes, strict=False)]


def _borrowed_results(plan: Plan, lifetimes: Lifetimes) -> list[_BorrowedResult]:
    feeds = {slot: feed for feed, slot in plan.feeds.items()}
    return [
        _BorrowedResult(k, feeds[lifetimes.roots[k].slot], plan.result_types[k].shape) for k in plan.results_in_feeds
    ]
