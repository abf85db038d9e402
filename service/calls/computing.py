"""Base of the calls that run a graph: one engine call each, and answers of one form."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from engine import Call, Compiled, Deadline, HostArray, Label, NonfiniteWatch, OverBudget, Program, TensorType
from engine.planning.estimate import run_seconds
from service.calls import calls
from service.calls.definition import CallDefinition, Engine
from service.calls.repeated import Cost, Repeated
from service.wire.answers import FIELD_BYTES, Body, RunStats, write_result
from service.wire.request import ParsedRequest, types_of
from service.wire.template import AnswerTemplate
from service.wire.tensors import encoded_bytes

#: types of tensors that belong to nodes
TypesOfNodes = tuple[tuple[int, TensorType], ...]


@dataclass(frozen=True)
class CallArguments:
    """What an engine call is made from: a program, the types of its feeds and, by role, of the tensors beside them."""

    program: Program
    types: Mapping[int, TensorType]
    fields: Mapping[str, Any]
    beside: Mapping[str, TypesOfNodes]

    def get(self, *names: str) -> list[Any]:
        """Fields of the request, None where they are absent."""
        return [self.fields.get(name) for name in names]


@dataclass(frozen=True)
class Execution:
    """Run `call` of a program. `tensors` are the feeds by their node, and what comes beside them by (role, node)."""

    program: Program
    types: Mapping[int, TensorType]
    call: Call
    tensors: Mapping[Hashable, HostArray]
    encoding: str = "json"
    diagnose: bool = False


@dataclass(frozen=True)
class Prepared:
    """An execution with its plan, and how many bytes its answer has at most."""

    execution: Execution
    compiled: Compiled
    response_bytes: int


@dataclass(frozen=True)
class Result:
    """Arrays and what they are, in the order of the answer; `disconnected` is None where there are no gradients."""

    arrays: list[tuple[Label, HostArray]]
    disconnected: Sequence[int] | None
    stats: RunStats


class Computing(CallDefinition[Execution, Prepared, Result]):
    """A call that runs a graph. A subclass says which call of the engine it is."""

    #: roles of the tensors that it takes beside the feeds, in fields of these names
    beside: ClassVar[tuple[str, ...]] = ()

    #: fields that hold one such tensor each
    single: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.roles = ("feeds", "constants", *cls.beside)
        # in the order of `Execution.tensors`
        cls.tensor_fields = ("feeds", *cls.beside, *cls.single)

    @abstractmethod
    def call(self, arguments: CallArguments) -> Call:
        """The engine's call. Raises Refusal and EngineError."""

    def tensors_beside(self, request: ParsedRequest) -> dict[str, dict[int, HostArray]]:
        """The tensors that come beside the feeds, by role and node."""
        return {role: request.tensors(role) for role in self.beside}

    def read(self, request: ParsedRequest) -> Execution:
        """Program, feeds, and the engine's call."""
        program, feeds = request.program, request.feeds
        beside = self.tensors_beside(request)
        types = types_of(feeds)
        given = {role: tuple(types_of(arrays).items()) for role, arrays in beside.items()}
        tensors: dict[Hashable, HostArray] = {node: array for node, array in feeds.items()}  # noqa: C416 - wider keys
        tensors |= {(role, node): array for role, arrays in beside.items() for node, array in arrays.items()}
        return Execution(
            program=program,
            types=types,
            call=self.call(CallArguments(program, types, request.fields, given)),
            tensors=tensors,
            encoding=request.encoding,
            diagnose=request.fields.get("diagnose", False),
        )

    def prepare(self, task: Execution, engine: Engine, deadline: Deadline) -> Prepared:
        """The plan. Refuses what is over the budgets, of the answer too."""
        compiled = engine.compiler.compile(task.program, task.types, task.call, deadline, node_by_node=task.diagnose)
        response = FIELD_BYTES + encoded_bytes(compiled.plan.result_types, task.encoding)
        _admit_answer(response, task.encoding, engine.max_response_bytes)
        return Prepared(task, compiled, response)

    def cost(self, ready: Prepared) -> Cost:
        """By its plan."""
        plan = ready.compiled.plan
        return Cost(run_seconds(plan), plan.peak_bytes, ready.response_bytes)

    def run(self, ready: Prepared, engine: Engine, deadline: Deadline) -> Result:
        """Values and derivatives."""
        task, compiled = ready.execution, ready.compiled
        watch = NonfiniteWatch(task.program, task.tensors, compiled.plan) if task.diagnose else None
        started = time.perf_counter()
        arrays = engine.executor.run(compiled.plan, task.tensors, deadline, watch)
        elapsed = 1000 * (time.perf_counter() - started)
        stats = RunStats(
            device=engine.executor.device,
            plan_cached=compiled.cached,
            execute_ms=round(elapsed, 4),
            peak_bytes=compiled.plan.peak_bytes,
            graph_id=compiled.name.of(task.program),
            dtype=compiled.dtype,
            first_nonfinite=None if watch is None else watch.found,
        )
        named = list(zip(compiled.labels, arrays, strict=True))
        return Result(named, _disconnected(compiled), stats)

    def write(self, outcome: Result, ready: Prepared, encoding: str) -> Body:
        """A list of tensors for each kind of result."""
        return write_result(outcome.arrays, outcome.disconnected, outcome.stats, encoding)

    def is_cached(self, ready: Prepared) -> bool:
        """Whether the plan was made for an earlier request."""
        return ready.compiled.cached

    def remembered(self, ready: Prepared, outcome: Result) -> Repeated | None:
        """The plan by its key; what a call with `diagnose` looks at differs from run to run."""
        task, compiled = ready.execution, ready.compiled
        if task.diagnose or compiled.key is None:
            return None
        disconnected, stats, types = outcome.disconnected, outcome.stats, compiled.plan.result_types
        template = AnswerTemplate.of(compiled.labels, types, disconnected, stats) if task.encoding == "json" else None
        feeds = tuple((feed, TensorType.of(array)) for feed, array in task.tensors.items())
        return Repeated(compiled.key, feeds, disconnected, task.encoding, stats, self.cost(ready), template)


def computing_calls() -> Mapping[str, Computing]:
    """Of all calls, those that run a graph."""
    return {name: call for name, call in calls().items() if isinstance(call, Computing)}


def _admit_answer(count: int, encoding: str, limit: int) -> None:
    """Refuse an answer that could get too long, before anything is computed."""
    if count > limit:
        shorter = ", or for base64" if encoding == "json" else ""
        raise OverBudget(
            f"the answer may need {count} bytes, and the limit is {limit}; ask for fewer outputs or gradients{shorter}",
            expected=f"at most {limit} bytes",
            got=f"{count} bytes",
        )


def _disconnected(compiled: Compiled) -> Sequence[int] | None:
    """The nodes without a path; None where there are no gradients."""
    has_gradients = any(label.kind == "gradients" for label in compiled.labels)
    return compiled.disconnected if has_gradients else None
