"""Requests in the engine's terms: read as a server reads them, and planned."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from engine import (
    LATEST,
    Compiled,
    EngineError,
    HostArray,
    OverBudget,
    Plan,
    Program,
    TensorType,
    Values,
    analyse,
    export_gradients,
    registry,
)
from engine.compiler.compiler import CompileRequest, compile_call
from engine.compiler.plan import graph_of, make_plan
from engine.ir.errors import OverMemory
from engine.ir.passes import dce
from engine.ir.sample import Operand
from service.api.graphs import Programs, Translator
from service.api.json_reader import Message
from service.api.request import PrecisionChoice, RequestReader
from service.core.errors import Refusal, from_engine
from service.workers.executions import executions
from service.workers.executions.computing import Computation
from service.workers.executions.graph_analysis import Checking, Differentiation, Planning
from tests.fuzz.drawing import LIMITS
from tests.fuzz.graphs import Request
from tests.fuzz.values import numbers
from tests.fuzz.written_out import written_out

#: of the memory that a plan takes, what it is planned for once more
LESS_MEMORY: Final = 0.6
_TRANSLATOR: Final = Translator(registry(), LIMITS)
_READER: Final = RequestReader(
    _TRANSLATOR, Programs(_TRANSLATOR, 1, 1 << 20, 64), LIMITS, LIMITS.nodes, PrecisionChoice()
)


class Refused(NamedTuple):
    """A problem report, as far as it is the engine's to say."""

    code: str
    detail: str
    node: int | None
    operand: int | None
    expected: str | None
    got: str | None


class Other(NamedTuple):
    """A plan whose results `at`, all by default, are to be alike; with `finite`, where they are finite."""

    plan: Plan
    feeds: Mapping[Hashable, HostArray]
    at: tuple[int, ...] | None = None
    finite: bool = False


class Planned(NamedTuple):
    """What a request comes to: a plan, and what it is fed; and the certificate that was asked for, if it was.

    `others` are plans that say the same in other ways, by what these are called.
    """

    plan: Plan
    feeds: Mapping[Hashable, HostArray]
    check: Checking | None = None
    others: Mapping[str, Other] = {}


def refused(error: EngineError | Refusal) -> Refused:
    """What a client reads."""
    report = from_engine(error) if isinstance(error, EngineError) else error
    return Refused(report.code, report.detail, report.node, report.operand, report.expected, report.got)


def planned(request: Request) -> Planned:
    """The plan of a request. Raises EngineError and Refusal, as a server would refuse it."""
    task = _task(request)
    if isinstance(task, Checking):
        types = {node: TensorType.of(array) for node, array in task.feeds.items()}
        return Planned(
            compile_call(CompileRequest(task.program, types, task.call, LIMITS)).plan, dict(task.feeds), task
        )
    if isinstance(task, Differentiation):
        return _exported(task)
    assert isinstance(task, Computation | Planning), f"{request.call} is a call of a new kind: say here how it is run"
    found = compile_call(CompileRequest(task.program, task.types, task.call, LIMITS))
    feeds = dict(task.tensors) if isinstance(task, Computation) else ordinary(task.types)
    if isinstance(task, Planning):
        foretold = analyse(CompileRequest(task.program, task.types, task.call, LIMITS)).result_types
        assert tuple(foretold) == tuple(found.plan.result_types), "the analysis has other types than the plan"
    return Planned(found.plan, feeds, others=_others(request, task, Other(found.plan, feeds)))


def _task(request: Request) -> Any:
    execution = executions()[request.call]
    call = execution.description
    opened = _READER.open(Message(request.body), call.request, call.roles, lambda _: None, packed=False)
    return execution.read_call(opened)


def _others(request: Request, task: Computation | Planning, found: Other) -> dict[str, Other]:
    """The same within less memory, and without functions, as far as that is possible."""
    others: dict[str, Other] = {}
    less = _within(task, int(found.plan.peak_bytes * LESS_MEMORY), found.plan.peak_bytes)
    if less is not None:
        others["less memory"] = Other(less, found.feeds)
    example = task.call.example(task.program, task.types)
    if isinstance(task, Computation) and (plain := written_out(request, task.program, example)) is not None:
        with suppress(OverBudget):
            steps = _task(plain)
            plan = compile_call(CompileRequest(steps.program, steps.types, steps.call, LIMITS)).plan
            others["written out"] = Other(plan, dict(steps.tensors), finite=True)
    return others


def ordinary(types: Mapping[int, TensorType]) -> dict[Hashable, HostArray]:
    """Numbers for leaves of which a request states the types alone."""
    rng = np.random.default_rng(0)
    return {i: numbers(rng, Operand("real", t.shape, -2.0, 2.0), t.dtype, "tame") for i, t in types.items()}


def _within(task: Computation | Planning, memory: int, peak: int) -> Plan | None:
    """The plan within so many bytes, or else within the least that there is one for; None where that is the `peak`."""
    try:
        return compile_call(CompileRequest(task.program, task.types, task.call, LIMITS, memory=memory)).plan
    except OverMemory as error:
        least = error.peak or peak
    except OverBudget:
        return None
    return _within(task, least, memory) if memory < least < peak else None


def _exported(task: Differentiation) -> Planned:
    """The gradients by the graph that `differentiate` writes, and by the call itself."""
    whole = compile_call(CompileRequest(task.program, task.types, task.call, LIMITS))
    exported = export_gradients(task.program, task.types, task.call, LIMITS)
    by_node = {gradient: node for node, gradient in reversed(exported.gradients)}
    program = Program(registry(), exported.statements, LIMITS, opset=LATEST, functions=exported.functions)
    found: Compiled = compile_call(
        CompileRequest(program, task.types, Values.of_program(program, list(by_node)), LIMITS)
    )
    kinds = {label.nodes[0]: i for i, label in enumerate(whole.labels) if label.kind == "gradients"}
    graph, feeds = graph_of(whole.plan, registry()), ordinary(task.types)
    # The loss itself may hold an index outside its axis, which a gradient that does not read it never meets.
    gradients = dce(graph.with_nodes(graph.nodes, [graph.outputs[kinds[node]] for node in by_node.values()]))
    return Planned(found.plan, feeds, others={"exported": Other(make_plan(gradients, LIMITS), feeds)})
