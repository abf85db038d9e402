"""Neighbouring native calls of a plan as one call: a runner makes them, one after the other, large ones by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.executors.witness import NOWHERE, witness
from engine.graph.errors import DeadlineExceeded, EngineError
from engine.graph.ir import Origin, at_origin
from engine.graph.limits import NO_DEADLINE, Deadline
from engine.graph.tensor_type import HostArray
from engine.native.native_call import NativeCall, NativeGuard
from engine.native.runner import Runner
from engine.native.runner_layout import MOST_HELPERS, MOST_STEP_PARTS, NEVER_COMES, StepEntry, WatchEntry
from engine.native.sharing import CHUNKS_PER_THREAD

#: a part takes less, at a nanosecond a FLOP and a byte that is written, where its step has items enough
PART_NANOSECONDS: Final = 5_000_000
#: what a float of seconds is rounded by is less
_ROUNDING: Final = 1_000


class NativeStep(NamedTuple):
    """A call that a runner can make, what it is estimated to take, and the client's node that it comes from."""

    call: NativeCall | NativeGuard
    nanoseconds: int
    origin: Origin | None = None


class RegionWatch:
    """Words that the regions of a run look at: its deadline, and the byte that ends it. Without one, at nothing."""

    def __init__(self) -> None:
        self._entries: HostArray = np.array([NEVER_COMES, 0], np.int64)
        self.deadline = NO_DEADLINE
        self._stop: HostArray | None = None
        self.address: int = self._entries.ctypes.data

    def begin(self, deadline: Deadline) -> None:
        """From now on look at this one."""
        if deadline is not self.deadline:
            self.deadline = deadline
            moment = min(deadline.at * 1e9 + _ROUNDING, NEVER_COMES)
            self._entries[WatchEntry.MOMENT] = NEVER_COMES if moment == NEVER_COMES else int(moment)
            self._stop = _memory(deadline)
            self._entries[WatchEntry.STOP] = 0 if self._stop is None else self._stop.ctypes.data

    def end(self) -> None:
        """Look at nothing, and let go of the deadline's memory."""
        self.begin(NO_DEADLINE)

    def ended(self) -> DeadlineExceeded:
        """Why a region has ended early."""
        try:
            self.deadline.check()
        except DeadlineExceeded as error:
            return error
        return DeadlineExceeded("nobody waits for the answer any more")


class Region:
    """Calls in a row as one, for one thread at a time, at a place in the plan. It refers to what the calls keep."""

    def __init__(self, runner: Runner, watch: RegionWatch, steps: Sequence[NativeStep], place: bytes = NOWHERE) -> None:
        self._runner, self._watch = runner, watch
        self._calls = [step.call for step in steps]
        self._origins = [step.origin for step in steps]
        self._steps: HostArray = np.zeros((len(steps), StepEntry.SIZE), np.int64)
        for row, step in zip(self._steps, steps, strict=True):
            _write_step(row, step)
        self._place = place
        self._helpers = int(self._steps[:, StepEntry.HELPERS].max())
        self._address: int = self._steps.ctypes.data

    def __call__(self) -> None:
        """Make all calls. Raises DeadlineExceeded, and what a guard finds with its node: then some were not made."""
        runner, count, watch = self._runner, len(self._calls), self._watch
        if self._helpers > runner.helpers:
            runner.want(self._helpers)
        first = 0
        witness.is_at(self._place)
        while (reached := runner.run(self._address, first, count, watch.address, runner.pool)) != count:
            if reached < 0:
                raise watch.ended()
            self._guard(reached)
            first = reached + 1

    def _guard(self, at: int) -> None:
        try:
            self._calls[at]()
        except DeadlineExceeded:
            raise  # the fault of no node
        except EngineError as error:
            raise at_origin(error, self._origins[at]) from None


def alone(steps: Sequence[NativeStep]) -> HostArray:
    """The words of steps that one thread makes, each as one array."""
    rows: HostArray = np.zeros((len(steps), StepEntry.SIZE), np.int64)
    for row, step in zip(rows, steps, strict=True):
        _write_step(row, step)
    rows[:, StepEntry.PARTS], rows[:, StepEntry.HELPERS] = 1, 0
    return rows


def _memory(deadline: Deadline) -> HostArray | None:
    """The byte that ends a run, where it lies; None where it cannot change, or is no memory."""
    if isinstance(deadline.stop, bytes):
        return None
    stop: Any = deadline.stop
    try:
        return np.frombuffer(stop, np.uint8)
    except (TypeError, ValueError):
        return None


def _write_step(row: HostArray, step: NativeStep) -> None:
    call = step.call
    if isinstance(call, NativeGuard):
        row[StepEntry.TABLE] = call.word.ctypes.data
        return
    threads = min(len(call.entries), MOST_HELPERS + 1)
    parts = max(CHUNKS_PER_THREAD * threads if threads > 1 else 1, step.nanoseconds // PART_NANOSECONDS)
    row[StepEntry.FUNCTION] = call.address
    row[StepEntry.ITEMS] = call.items
    row[StepEntry.TABLE] = call.entries.ctypes.data
    row[StepEntry.STRIDE] = call.entries.strides[0]
    row[StepEntry.PARTS] = min(parts, call.items, MOST_STEP_PARTS)
    row[StepEntry.HELPERS] = threads - 1
    row[StepEntry.NANOSECONDS] = step.nanoseconds
