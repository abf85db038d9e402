"""The contract of an execution, from a parsed request to the body of its answer; cached requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from engine import Compiler, Deadline, Program
from engine.executors.interpreter import Executor
from engine.planning.estimate import DENSE_FLOP, planning_seconds
from service.calls.description import CallDescription
from service.calls.estimate import Estimate
from service.executions.cached_request import CachedRequest
from service.wire.answers import AnswerBody
from service.wire.request import ParsedRequest
from service.wire.storing import Kept

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
        """What is asked, in the engine's terms. Raises Refusal and EngineError."""

    def prepare(self, parsed: Parsed, engine: Engine, deadline: Deadline) -> Ready:
        """All that can be done and refused before anything is computed; by default nothing. Raises EngineError."""
        return cast("Ready", parsed)

    def cost(self, ready: Ready) -> Estimate:
        """What `run_call` will take; by default as long as to look at every node of its program."""
        return cost_of_analysis(cast("_OfProgram", ready).program)

    @abstractmethod
    def run_call(self, ready: Ready, engine: Engine, deadline: Deadline) -> Outcome:
        """Do it. Raises EngineError."""

    @abstractmethod
    def write_body(self, outcome: Outcome, ready: Ready, encoding: str) -> AnswerBody:
        """The answer, its tensors in this encoding: json, base64 or binary."""

    def kept(self, outcome: Outcome) -> Sequence[Kept]:
        """The tensors that are to be kept; by default none."""
        return ()

    def is_cached(self, ready: Ready) -> bool:
        """Whether it was planned for an earlier request."""
        return False

    def remembered(self, ready: Ready, outcome: Outcome, engine: Engine, cost: Estimate) -> CachedRequest | None:
        """What is left to do when the same comes with other tensors, once it was done; None where that is all of it.

        `cost` is what `cost` said.
        """
        return None


def cost_of_analysis(program: Program, times: int = 1) -> Estimate:
    """What a call takes that looks at every node, so many times over."""
    return Estimate(times * planning_seconds(program.size))


AnyExecution = CallExecution[Any, Any, Any]
