"""The contract of an execution, from a parsed request to the body of its answer; cached requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, cast

import numpy as np

from engine import Compiler, Deadline, HostArray, Label, Program, TensorType
from engine.compiler.fused_kernel import DENSE_FLOP, planning_seconds
from engine.ir.run_report import RunReport
from engine.runtime.interpreter import Executor
from service.api.answers import AnswerBody, RunStats, write_result
from service.api.calls.description import CallDescription
from service.api.request import AnswerTemplate, ParsedRequest
from service.api.residents import Find, Kept, ResidentFeed, Storing, rows_from
from service.api.tensors import decode_again
from service.facades.foreign_call import OwnRequest
from service.workers.task import Estimate, Task, Timings

#: bytes of one, beside its template
BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class CachedRequest:
    """Rest of a request that was answered: its plan by name, what it fed, and how its answer is written.

    It holds no tensors, no graph and no plan. `feeds` are those that came, and `residents` have a name each.
    `disconnected` is None where there are no gradients; `stats` are those of the answer, but for the time and the
    report; `storing` is None where nothing is kept.
    """

    plan: Hashable
    feeds: tuple[tuple[Hashable, TensorType], ...]
    residents: tuple[tuple[Hashable, TensorType, ResidentFeed], ...]
    disconnected: Sequence[int] | None
    encoding: str
    stats: RunStats
    cost: Estimate
    template: AnswerTemplate | None
    storing: Storing | None

    def read_tensors(
        self, data: Sequence[tuple[str | None, Any]], starts: Sequence[int | None], find: Find
    ) -> dict[Hashable, HostArray] | None:
        """Read the tensors that these data stand for, in the order of `feeds`, and resident ones by their first rows.

        None where one of these is not there, or of another type. Raises Refusal, which does not say where.
        """
        with np.errstate(over="ignore"):
            tensors = {feed: decode_again(one, type) for (feed, type), one in zip(self.feeds, data, strict=True)}
        for (feed, type, resident), start in zip(self.residents, starts, strict=True):
            version = find(resident.name)
            if version is None or resident.is_cut != (start is not None):
                return None
            array = version.array if start is None else rows_from(version.array, start, type.shape[0])
            if array is None or array.shape != type.shape or array.dtype != type.dtype:
                return None
            tensors[feed] = array
        return tensors

    def kept(self, arrays: Sequence[HostArray], conditions: Sequence[str | None]) -> list[Kept]:
        """Collect the results that are to be kept, upon these conditions."""
        assert self.storing is not None
        return self.storing.kept(arrays[len(arrays) - len(self.storing.sources) :], conditions)

    def write_body(
        self,
        labels: Sequence[Label],
        arrays: Sequence[HostArray],
        execute_ms: float,
        report: RunReport,
        kept: Sequence[Kept],
    ) -> AnswerBody:
        """Write the answer with these results; those that are kept come last, and are not in it."""
        if self.storing is not None:
            count = len(arrays) - len(self.storing.sources)
            labels, arrays = labels[:count], arrays[:count]
        stored = [one.told for one in kept] if kept else ()
        filled = None if self.template is None else self.template.fill(arrays, execute_ms, report, stored)
        if filled is not None:
            return filled
        stats = self.stats.after(execute_ms, report)
        return write_result(list(zip(labels, arrays, strict=True)), self.disconnected, stats, self.encoding, stored)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, about."""
        return BYTES + (0 if self.template is None else self.template.nbytes)


Parsed = TypeVar("Parsed")
Ready = TypeVar("Ready")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Engine:
    """Engine that calls run on: a compiler with its plans, a device, and the limits of one request."""

    compiler: Compiler
    executor: Executor
    max_response_bytes: int
    #: milliseconds in which what is stored without waiting for the disk is there
    write_behind_ms: int
    #: all limits, as `plan` tells them
    limits: Mapping[str, int]
    #: what answers call the server that it is of, where there are others
    server: str | None = None
    #: seconds of a FLOP in products of matrices, for each byte of an element
    dense_flop: float = DENSE_FLOP


class _OfProgram(Protocol):
    """Parsed call that looks at a program."""

    program: Program


class CallExecution(ABC, Generic[Parsed, Ready, Outcome]):
    """Execution of one call.

    Data flows one way: `read_call` says what is asked in the engine's terms, `prepare` plans it, `run_call` does it,
    `write_body` makes the answer. None of them knows HTTP.
    """

    description: ClassVar[type[CallDescription]]

    @abstractmethod
    def read_call(self, request: ParsedRequest) -> Parsed:
        """Read the request in the engine's terms. Raises Refusal and EngineError."""

    def prepare(self, parsed: Parsed, engine: Engine, deadline: Deadline) -> Ready:
        """Do and refuse all that can be before anything is computed; by default nothing. Raises EngineError."""
        return cast("Ready", parsed)

    def cost(self, ready: Ready) -> Estimate:
        """Estimate `run_call`; by default as long as to look at every node of its program."""
        return cost_of_analysis(cast("_OfProgram", ready).program)

    @abstractmethod
    def run_call(self, ready: Ready, engine: Engine, deadline: Deadline) -> Outcome:
        """Do it. Raises EngineError."""

    @abstractmethod
    def write_body(self, outcome: Outcome, ready: Ready, encoding: str) -> AnswerBody:
        """Write the answer, its tensors in this encoding: json, base64 or binary."""

    def kept(self, outcome: Outcome) -> Sequence[Kept]:
        """Return the tensors that are to be kept; by default none."""
        return ()

    def is_cached(self, ready: Ready) -> bool:
        """Whether it was planned for an earlier request."""
        return False

    def remembered(self, ready: Ready, outcome: Outcome, engine: Engine, cost: Estimate) -> CachedRequest | None:
        """Cache what is left to do when the same comes with other tensors; None where that is all of it.

        `cost` is what `cost` said.
        """
        return None


def cost_of_analysis(program: Program, times: int = 1) -> Estimate:
    """Estimate a call that looks at every node, so many times over."""
    return Estimate(times * planning_seconds(program.size))


AnyExecution = CallExecution[Any, Any, Any]


#: seconds that planning may take even where what is over a time is not to be run: it is done once
PLANNING: Final = 0.05
#: what is expected of a task that was not planned in that time
UNPLANNED: Final = Estimate(1.0, 0, 0)


class TaskContext:
    """A task from the moment on that a worker takes it up; what takes longer than `most_seconds` is not to be run."""

    __slots__ = ("_backward", "_marks", "deadline", "most_seconds", "own", "task")

    def __init__(self, task: Task, most_seconds: float | None) -> None:
        self._marks = [perf_counter()]
        self._backward = 0.0
        self.task = task
        self.most_seconds = most_seconds
        #: what it comes to, where it is of another protocol
        self.own: OwnRequest | None = None
        self.deadline = Deadline(task.timeout, start=task.expires - task.timeout, stop=task.stop)

    def patience(self, seconds: float) -> Deadline:
        """Return the deadline of a part of the work that is to take no longer than this, if the task is to be short."""
        if self.most_seconds is None:
            return self.deadline
        start = monotonic()
        return Deadline(max(0.0, min(seconds, self.task.expires - start)), start, self.task.stop)

    @property
    def is_reading(self) -> bool:
        """Whether the request is still being read: none of its parts is over."""
        return len(self._marks) == 1

    def is_too_long(self, cost: Estimate, patience: float = 0.0) -> bool:
        """Whether this is not to be done now. What takes no longer than `patience` always is."""
        return self.most_seconds is not None and cost.seconds > max(self.most_seconds, patience)

    def mark(self) -> float:
        """Note the end of a part, decoding, planning, or execution, and return its time."""
        now = perf_counter()
        self._marks.append(now)
        return now

    def mark_read(self) -> None:
        """Note the end of decoding, where nothing is to be planned, nor executed."""
        for _ in ("decoding", "planning", "execution"):
            self.mark()

    def ran(self) -> float:
        """Note the end of execution, and return its time."""
        if self.deadline.turned is not None:
            self._backward = monotonic() - self.deadline.turned
        return self.mark()

    def timings(self) -> Timings:
        """Return the times of all parts, now that the last one is over, which is encoding."""
        began, decoded, planned, executed = self._marks
        ended = perf_counter()
        return Timings(0.0, decoded - began, planned - decoded, executed - planned, self._backward, ended - executed)
