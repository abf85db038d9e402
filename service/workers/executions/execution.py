"""Contract of an execution, from a parsed request to the body of its answer; and cached requests."""

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
from service.api.residents import FindTensor, NewVersion, ResidentFeed, StoreTargets, rows_from
from service.api.tensors import decode_payload
from service.facades.foreign_call import OwnRequest
from service.workers.task import Estimate, Task, Timings

#: estimated bytes of a cached request, without its template
BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class CachedRequest:
    """Cached request: the name of its plan, the types of its feeds, and how its answer is written.

    It holds no tensors, graph or plan. `feeds` came with the request, `residents` are read by name. `disconnected` is
    None if there are no gradients; `stats` are those of the answer without time and report; `store_targets` is None if
    nothing is stored.
    """

    plan: Hashable
    feeds: tuple[tuple[Hashable, TensorType], ...]
    residents: tuple[tuple[Hashable, TensorType, ResidentFeed], ...]
    disconnected: Sequence[int] | None
    encoding: str
    stats: RunStats
    cost: Estimate
    template: AnswerTemplate | None
    store_targets: StoreTargets | None

    def read_tensors(
        self, data: Sequence[tuple[str | None, Any]], starts: Sequence[int | None], find: FindTensor
    ) -> dict[Hashable, HostArray] | None:
        """Read the tensors of a repetition: from `data`, in the order of `feeds`, and resident ones from `starts` on.

        Return None if one is missing or of another type. Raises Refusal, which does not tell the place of the error.
        """
        # NumPy would warn about numbers beyond the range of the dtype, as it would in a first request.
        with np.errstate(over="ignore"):
            tensors = {feed: decode_payload(entry, type) for (feed, type), entry in zip(self.feeds, data, strict=True)}
        for (feed, type, resident), start in zip(self.residents, starts, strict=True):
            version = find(resident.name)
            if version is None or resident.has_rows != (start is not None):
                return None
            array = version.array if start is None else rows_from(version.array, start, type.shape[0])
            if array is None or array.shape != type.shape or array.dtype != type.dtype:
                return None
            tensors[feed] = array
        return tensors

    def stored_values(self, arrays: Sequence[HostArray], conditions: Sequence[str | None]) -> list[NewVersion]:
        """Return the results that are to be stored, under these conditions."""
        assert self.store_targets is not None
        return self.store_targets.new_versions(arrays[len(arrays) - len(self.store_targets.sources) :], conditions)

    def write_body(
        self,
        labels: Sequence[Label],
        arrays: Sequence[HostArray],
        execute_ms: float,
        report: RunReport,
        entries: Sequence[NewVersion],
    ) -> AnswerBody:
        """Write the answer with these results; those that are stored come last, and are not part of it."""
        if self.store_targets is not None:
            count = len(arrays) - len(self.store_targets.sources)
            labels, arrays = labels[:count], arrays[:count]
        stored = [entry.entry for entry in entries] if entries else ()
        filled = None if self.template is None else self.template.fill(arrays, execute_ms, report, stored)
        if filled is not None:
            return filled
        stats = self.stats.after(execute_ms, report)
        return write_result(list(zip(labels, arrays, strict=True)), self.disconnected, stats, self.encoding, stored)

    @property
    def nbytes(self) -> int:
        """Estimated size in bytes."""
        return BYTES + (0 if self.template is None else self.template.nbytes)


Parsed = TypeVar("Parsed")
Ready = TypeVar("Ready")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Engine:
    """Engine as calls use it: a compiler with its plans, a device, and the limits of one request."""

    compiler: Compiler
    executor: Executor
    max_response_bytes: int
    #: milliseconds until what is stored without waiting for the disk has been written
    write_behind_ms: int
    #: all limits, as the plan call reports them
    limits: Mapping[str, int]
    #: name of the server in answers, if there are several
    server: str | None = None
    #: measured seconds of a FLOP in matrix products, per byte of an element
    dense_flop: float = DENSE_FLOP


class _OfProgram(Protocol):
    """Parsed call that analyses a program."""

    program: Program


class CallExecution(ABC, Generic[Parsed, Ready, Outcome]):
    """Execution of one call.

    Data flows one way: `read_call` translates the request into the engine's terms, `prepare` plans it, `run_call`
    computes it, and `write_body` writes the answer. None of them knows HTTP.
    """

    description: ClassVar[type[CallDescription]]

    @abstractmethod
    def read_call(self, request: ParsedRequest) -> Parsed:
        """Translate the request into the engine's terms. Raises Refusal and EngineError."""

    def prepare(self, parsed: Parsed, engine: Engine, deadline: Deadline) -> Ready:
        """Do everything that can be done and refused before computing; by default nothing. Raises EngineError."""
        return cast("Ready", parsed)

    def cost(self, ready: Ready) -> Estimate:
        """Estimate `run_call`; by default, the time to visit every node of its program."""
        return cost_of_analysis(cast("_OfProgram", ready).program)

    @abstractmethod
    def run_call(self, ready: Ready, engine: Engine, deadline: Deadline) -> Outcome:
        """Compute the outcome. Raises EngineError."""

    @abstractmethod
    def write_body(self, outcome: Outcome, ready: Ready, encoding: str) -> AnswerBody:
        """Write the answer with its tensors encoded as json, base64 or binary."""

    def stored_values(self, outcome: Outcome) -> Sequence[NewVersion]:
        """Return the tensors that are to be stored; by default none."""
        return ()

    def is_cached(self, ready: Ready) -> bool:
        """Return whether the plan was made for an earlier request."""
        return False

    def cache_entry(self, ready: Ready, outcome: Outcome, engine: Engine, cost: Estimate) -> CachedRequest | None:
        """Return the cache entry for repetitions with other tensors, at this `cost`; None if caching saves nothing."""
        return None


def cost_of_analysis(program: Program, times: int = 1) -> Estimate:
    """Estimate a call that visits every node, `times` times."""
    return Estimate(times * planning_seconds(program.size))


AnyExecution = CallExecution[Any, Any, Any]


#: seconds that planning may take even if longer tasks are not to be run: it is done once
PLANNING: Final = 0.05
#: estimate for a task that could not be planned in that time
UNPLANNED: Final = Estimate(1.0, 0, 0)


class TaskContext:
    """Task in a worker: its deadlines and phases. If it would take more than `most_seconds`, it is not to be run."""

    __slots__ = ("_backward", "_marks", "deadline", "fields", "most_seconds", "task", "translated")

    def __init__(self, task: Task, most_seconds: float | None) -> None:
        self._marks = [perf_counter()]
        self._backward = 0.0
        self.task = task
        self.most_seconds = most_seconds
        #: the call that a task of another protocol was translated to
        self.translated: OwnRequest | None = None
        #: fields of the client's own request, if they are valid: errors point to them
        self.fields: Mapping[str, Any] | None = None
        self.deadline = Deadline(task.timeout, start=task.expires - task.timeout, stop=task.stop)

    def patience(self, seconds: float) -> Deadline:
        """Return the deadline of a step that may take `seconds` at most, if the task has to be short."""
        if self.most_seconds is None:
            return self.deadline
        start = monotonic()
        return Deadline(max(0.0, min(seconds, self.task.expires - start)), start, self.task.stop)

    @property
    def is_reading(self) -> bool:
        """Whether the request is still being read: no phase has ended."""
        return len(self._marks) == 1

    def is_too_long(self, cost: Estimate, patience: float = 0.0) -> bool:
        """Return whether the task is too long to be run here. A cost up to `patience` is always accepted."""
        return self.most_seconds is not None and cost.seconds > max(self.most_seconds, patience)

    def mark(self) -> float:
        """Note the end of a phase (decoding, planning or execution), and return the time."""
        now = perf_counter()
        self._marks.append(now)
        return now

    def mark_read(self) -> None:
        """Note the end of decoding if nothing is to be planned or executed."""
        for _ in ("decoding", "planning", "execution"):
            self.mark()

    def ran(self) -> float:
        """Note the end of execution, and return the time."""
        if self.deadline.backward_start is not None:
            self._backward = monotonic() - self.deadline.backward_start
        return self.mark()

    def timings(self) -> Timings:
        """Return the times of all phases; encoding ends with this call."""
        # The front knows when the task was sent, and fills in the time that it waited.
        began, decoded, planned, executed = self._marks
        ended = perf_counter()
        return Timings(0.0, decoded - began, planned - decoded, executed - planned, self._backward, ended - executed)
