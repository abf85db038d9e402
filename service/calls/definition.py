"""The contract of a call: all of it but its messages, in one file.

A call is one subclass of `CallDefinition` in one file under `service.calls`; its messages stand in one file under
`schemas.calls`. Discovery finds it there, and the routes, the OpenAPI document, the tests and the guide follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from engine import Compiler, Deadline, Program
from engine.executors.interpreter import Executor
from engine.planning.estimate import DENSE_FLOP, planning_seconds
from service.calls.cached_request import CachedRequest
from service.calls.estimate import Estimate
from service.wire.answers import AnswerBody
from service.wire.request import ParsedRequest
from service.wire.storing import Kept

Json = dict[str, Any]
Task = TypeVar("Task")
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
    """Task that is to look at a program."""

    program: Program


class Guide:
    """A call's row in the guide: what it answers, what that costs about, and when to ask it; Markdown."""

    def __init__(self, answers: str, costs: str, ask_for: str, page: str = "") -> None:
        self.answers = answers
        self.costs = costs
        self.ask_for = ask_for
        #: where the guide tells of it; by default on the page of its name
        self.page = page


class CallDefinition(ABC, Generic[Task, Ready, Outcome]):
    """One call, `POST /v1/NAME`. The docstring of a subclass is its text: a summary, then a paragraph.

    Data flows one way: `read_task` says what is asked in the engine's terms, `prepare` plans it, `run_task` does it,
    `write_body` makes the answer. None of them knows HTTP.
    """

    name: ClassVar[str]
    #: where it stands in lists for people
    position: ClassVar[int] = 100
    #: its group in the OpenAPI document
    tag: ClassVar[str] = "compute"
    #: its messages
    request: ClassVar[type]
    answer: ClassVar[type]
    #: roles of the tensors that may stand beside the JSON of a request
    roles: ClassVar[tuple[str, ...]] = ("feeds", "constants")
    #: fields of a request that hold tensors, where these are all that may differ between requests that are alike
    tensor_fields: ClassVar[tuple[str, ...]] = ()
    #: requests that it answers, each under what it shows; failing ones are made from the first
    examples: ClassVar[Mapping[str, Json]]
    #: whether it differentiates, and then whether one node that must have one element, by default the last
    differentiates: ClassVar[bool] = True
    scalar: ClassVar[bool] = False
    guide: ClassVar[Guide]

    @abstractmethod
    def read_task(self, request: ParsedRequest) -> Task:
        """What is asked, in the engine's terms. Raises Refusal and EngineError."""

    def prepare(self, task: Task, engine: Engine, deadline: Deadline) -> Ready:
        """All that can be done and refused before anything is computed; by default nothing. Raises EngineError."""
        return cast("Ready", task)

    def cost(self, ready: Ready) -> Estimate:
        """What `run_task` will take; by default as long as to look at every node of its program."""
        return cost_of_analysis(cast("_OfProgram", ready).program)

    @abstractmethod
    def run_task(self, ready: Ready, engine: Engine, deadline: Deadline) -> Outcome:
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


AnyCall = CallDefinition[Any, Any, Any]
