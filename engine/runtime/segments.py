"""Segments of a plan: calls in a row, of which neighbouring native ones are made as one, a region.

A run checks its deadline between two segments. A runner makes the calls of a region one after the other, large ones by
several threads. The position of a failed call tells the node of an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import length_hint
from typing import Any, Final, NamedTuple, cast

import numpy as np

from engine.codegen.native.native_call import CHUNKS_PER_THREAD, NativeCall, NativeGuard, joined
from engine.codegen.native.runner import MOST_HELPERS, MOST_STEP_PARTS, NEVER_COMES, Runner, StepEntry, WatchEntry
from engine.compiler.plan import Step
from engine.ir.errors import DeadlineExceeded, EngineError
from engine.ir.graph import Origin, at_origin
from engine.ir.limits import NO_DEADLINE, Deadline
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray
from engine.runtime.crash_record import NOWHERE, crash_record, place_named

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
