"""Base of the calls that run a graph: each makes one call of the engine, and all answers have the same form."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from engine import (
    STORED_VALUES,
    Call,
    Compiled,
    Deadline,
    HostArray,
    Label,
    NonfiniteWatch,
    Program,
    TensorType,
    keeping,
)
from engine.analysis.diagnose import Nonfinite
from engine.compiler.compiler import CompileRequest
from engine.compiler.fused_kernel import run_seconds
from engine.ir.run_report import IEEE, Precision
from service.api.answers import FIELD_BYTES, STORE_ENTRY_BYTES, AnswerBody, RunStats, admit_answer, write_result
from service.api.calls.description import ComputingDescription
from service.api.request import AnswerTemplate, ParsedRequest, types_of
from service.api.residents import (
    Destination,
    NewVersion,
    ResidentFeed,
    StoreTargets,
    check_gradients,
    read_destinations,
    sources_of,
)
from service.api.tensors import encoded_bytes
from service.workers.executions.execution import CachedRequest, CallExecution, Engine
from service.workers.task import Estimate


@dataclass(frozen=True)
class CallArguments:
    """Arguments of an engine call: program, types of the feeds, and types of the other tensors by role."""

    program: Program
    types: Mapping[int, TensorType]
    fields: Mapping[str, Any]
    other_types: Mapping[str, tuple[tuple[int, TensorType], ...]]

    def get(self, *names: str) -> list[Any]:
        """Return fields of the request, None for those that are absent."""
        return [self.fields.get(name) for name in names]


@dataclass(frozen=True)
class Computation:
    """A `call` on a program, ready to be planned.

    `tensors` has the feeds by node, and other tensors by (role, node); `residents` are those of them that are read by
    name. Results that are stored go to `destinations`. The plan may use `memory_budget` bytes. `precision` is that of
    matrix products and convolutions.
    """

    program: Program
    types: Mapping[int, TensorType]
    call: Call
    tensors: Mapping[Hashable, HostArray]
    residents: Mapping[Hashable, ResidentFeed]
    destinations: tuple[Destination, ...] = ()
    encoding: str = "json"
    diagnose: bool = False
    memory_budget: int | None = None
    precision: Precision = IEEE

    def compile_request(self, engine: Engine, deadline: Deadline) -> CompileRequest:
        """Return the request to the compiler: with `diagnose`, one step per node."""
        return engine.compiler.request(
            self.program,
            self.types,
            self.call,
            deadline,
            node_by_node=self.diagnose,
            memory=self.memory_budget,
            precision=self.precision,
        )


@dataclass(frozen=True)
class Prepared:
    """Computation with its plan, and the most bytes of its answer.

    The first results are for the answer; those that follow are stored.
    """

    execution: Computation
    compiled: Compiled
    response_bytes: int
    dense_flop: float

    @property
    def answered(self) -> int:
        """Number of results in the answer."""
        return sum(label.kind != STORED_VALUES for label in self.compiled.labels)

    @property
    def recomputed_flops(self) -> int:
        """FLOPs that are computed again to save memory."""
        return self.compiled.plan.recomputed_flops


@dataclass(frozen=True)
class CallOutcome:
    """Labelled arrays in the order of the answer; `disconnected` is None if there are no gradients."""

    arrays: list[tuple[Label, HostArray]]
    disconnected: Sequence[int] | None
    stats: RunStats
    stored: Sequence[NewVersion]


class Computing(CallExecution[Computation, Prepared, CallOutcome]):
    """Execution of a call that runs a graph. A subclass tells which call of the engine it makes."""

    description: ClassVar[type[ComputingDescription]]

    @abstractmethod
    def call(self, arguments: CallArguments) -> Call:
        """Return the engine's call. Raises Refusal and EngineError."""

    def read_other_tensors(self, request: ParsedRequest) -> dict[str, dict[int, HostArray]]:
        """Return the tensors beside the feeds, by role and node."""
        return {role: request.tensors(role) for role in self.description.extra_roles}

    def read_call(self, request: ParsedRequest) -> Computation:
        """Return the program, its tensors, and the engine's call."""
        program, feeds = request.program, request.feeds
        other_tensors = self.read_other_tensors(request)
        types = types_of(feeds)
        # The engine's call needs only the types of these tensors; the plan is fed with their values.
        other_types = {role: tuple(types_of(arrays).items()) for role, arrays in other_tensors.items()}
        tensors: dict[Hashable, HostArray] = {node: array for node, array in feeds.items()}  # noqa: C416 - wider keys
        tensors |= {(role, node): array for role, arrays in other_tensors.items() for node, array in arrays.items()}
        residents: dict[Hashable, ResidentFeed] = dict(request.residents("feeds").items())
        residents |= {
            (role, node): resident for role in other_tensors for node, resident in request.residents(role).items()
        }
        destinations = read_destinations(request.fields)
        call = self.call(CallArguments(program, types, request.fields, other_types))
        return Computation(
            program=program,
            types=types,
            call=_with_stored(call, program, destinations) if destinations else call,
            tensors=tensors,
            residents=residents,
            destinations=destinations,
            encoding=request.encoding,
            diagnose=request.fields.get("diagnose", False),
            memory_budget=request.memory_budget,
            precision=request.precision,
        )

    def prepare(self, parsed: Computation, engine: Engine, deadline: Deadline) -> Prepared:
        """Compile the plan. Raises Refusal and EngineError for what exceeds a budget, also that of the answer."""
        compiled = engine.compiler.compile_request(parsed.compile_request(engine, deadline))
        return check_answer(Prepared(parsed, compiled, 0, engine.dense_flop), engine)

    def cost(self, ready: Prepared) -> Estimate:
        """Estimate a run from its plan."""
        plan = ready.compiled.plan
        stored_bytes = sum(type.nbytes for type in plan.result_types[ready.answered :])
        return Estimate(run_seconds(plan, ready.dense_flop), plan.peak_bytes, ready.response_bytes + stored_bytes)

    def run_call(self, ready: Prepared, engine: Engine, deadline: Deadline) -> CallOutcome:
        """Compute values and derivatives."""
        parsed, compiled = ready.execution, ready.compiled
        started = time.perf_counter()
        arrays, nonfinite = self.execute(ready, engine, deadline)
        elapsed = 1000 * (time.perf_counter() - started)
        stats = RunStats(
            device=engine.executor.device,
            plan_cached=compiled.cached,
            execute_ms=round(elapsed, 4),
            report=deadline.report,
            peak_bytes=compiled.plan.peak_bytes,
            recomputed_flops=ready.recomputed_flops,
            graph_id=compiled.name.get(parsed.program),
            opset=parsed.program.opset,
            dtype=compiled.dtype,
            first_nonfinite=nonfinite,
            server=engine.server,
        )
        # The results that are stored follow those of the answer.
        count = ready.answered
        named = list(zip(compiled.labels[:count], arrays[:count], strict=True))
        stored = StoreTargets(parsed.destinations, engine.write_behind_ms).new_versions(arrays[count:])
        has_gradients = any(label.kind == "gradients" for label in compiled.labels)
        return CallOutcome(named, compiled.disconnected if has_gradients else None, stats, stored)

    def execute(
        self, ready: Prepared, engine: Engine, deadline: Deadline
    ) -> tuple[Sequence[HostArray], Nonfinite | None]:
        """Run the plan; with `diagnose`, find the first result that is not finite."""
        parsed, plan = ready.execution, ready.compiled.plan
        watch = NonfiniteWatch(parsed.program, parsed.tensors, plan, engine.executor) if parsed.diagnose else None
        arrays = engine.executor.run(plan, parsed.tensors, deadline, watch)
        return arrays, None if watch is None else watch.first_nonfinite

    def write_body(self, outcome: CallOutcome, ready: Prepared, encoding: str) -> AnswerBody:
        """Write a list of tensors for each kind of result."""
        summaries = [entry.entry for entry in outcome.stored]
        return write_result(outcome.arrays, outcome.disconnected, outcome.stats, encoding, summaries)

    def stored_values(self, outcome: CallOutcome) -> Sequence[NewVersion]:
        """Return the values of the nodes of `store`."""
        return outcome.stored

    def is_cached(self, ready: Prepared) -> bool:
        """Return whether the plan was made for an earlier request."""
        return ready.compiled.cached

    def cache_entry(
        self, ready: Prepared, outcome: CallOutcome, engine: Engine, cost: Estimate
    ) -> CachedRequest | None:
        """Return the cache entry; None with `diagnose`, whose runs depend on the numbers."""
        parsed, compiled = ready.execution, ready.compiled
        if parsed.diagnose or compiled.key is None:
            return None
        disconnected, stats, count = outcome.disconnected, outcome.stats, ready.answered
        labels, types = compiled.labels[:count], compiled.plan.result_types[:count]
        template = AnswerTemplate.from_types(labels, types, disconnected, stats) if parsed.encoding == "json" else None
        fed = {feed: TensorType.of(array) for feed, array in parsed.tensors.items()}
        return CachedRequest(
            plan=compiled.key,
            feeds=tuple((feed, type) for feed, type in fed.items() if feed not in parsed.residents),
            residents=tuple((feed, fed[feed], resident) for feed, resident in parsed.residents.items()),
            disconnected=disconnected,
            encoding=parsed.encoding,
            stats=stats,
            cost=cost,
            template=template,
            store_targets=StoreTargets(parsed.destinations, engine.write_behind_ms) if parsed.destinations else None,
        )


def _with_stored(call: Call, program: Program, destinations: Sequence[Destination]) -> Call:
    """Extend a call by the results that go to these destinations. Raises Refusal and EngineError."""
    check_gradients(destinations, call.gradient_nodes)
    sources = sources_of(destinations)
    values, gradients = ([node for is_gradient, node in sources if is_gradient is kind] for kind in (False, True))
    return keeping(call, program, values, gradients)


def check_answer(ready: Prepared, engine: Engine) -> Prepared:
    """Record the size of the answer. Raises Refusal if it is too large."""
    parsed, types = ready.execution, ready.compiled.plan.result_types[: ready.answered]
    # Besides the results, the answer names the server and lists each stored tensor.
    name_bytes = len(engine.server or "")
    response = (
        FIELD_BYTES + name_bytes + encoded_bytes(types, parsed.encoding) + STORE_ENTRY_BYTES * len(parsed.destinations)
    )
    admit_answer(response, parsed.encoding, engine.max_response_bytes)
    return replace(ready, response_bytes=response)
