"""Planning of requests, which are read as a server reads them."""

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
from tests.fuzz.written_out import unrolled

#: the share of a plan's memory for which it is planned again
LESS_MEMORY: Final = 0.6
_TRANSLATOR: Final = Translator(registry(), LIMITS)
_READER: Final = RequestReader(
    _TRANSLATOR, Programs(_TRANSLATOR, 1, 1 << 20, 64), LIMITS, LIMITS.nodes, PrecisionChoice()
)


class Refused(NamedTuple):
    """The part of a problem report that comes from the engine."""

    code: str
    detail: str
    node: int | None
    operand: int | None
    expected: str | None
    got: str | None


class Other(NamedTuple):
    """A plan whose results `at`, all by default, must agree; with `finite`, only where they are finite.

    With `differentiates`, the other results may be NaN there: a backward loop starts at cotangents that are zero, and
    zero times a derivative that is infinite or NaN is NaN, where the unrolled steps have no path.
    """

    plan: Plan
    feeds: Mapping[Hashable, HostArray]
    at: tuple[int, ...] | None = None
    finite: bool = False
    differentiates: bool = False


class Planned(NamedTuple):
    """A planned request: a plan and its feeds, and the requested certificate, if any.

    `others` has equivalent plans by name.
    """

    plan: Plan
    feeds: Mapping[Hashable, HostArray]
    check: Checking | None = None
    others: Mapping[str, Other] = {}


def refused(error: EngineError | Refusal) -> Refused:
    """The report that a client reads."""
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
    compiled = compile_call(CompileRequest(task.program, task.types, task.call, LIMITS))
    feeds = dict(task.tensors) if isinstance(task, Computation) else ordinary(task.types)
    if isinstance(task, Planning):
        analysed_types = analyse(CompileRequest(task.program, task.types, task.call, LIMITS)).result_types
        assert tuple(analysed_types) == tuple(compiled.plan.result_types), "the analysis has other types than the plan"
    return Planned(compiled.plan, feeds, others=_others(request, task, Other(compiled.plan, feeds)))


def _task(request: Request) -> Any:
    execution = executions()[request.call]
    call = execution.description
    opened = _READER.open(Message(request.body), call.request, call.roles, lambda _: None, packed=False)
    return execution.read_call(opened)


def _others(request: Request, task: Computation | Planning, original: Other) -> dict[str, Other]:
    """Equivalent plans within less memory, and without functions, if possible."""
    others: dict[str, Other] = {}
    less = _within(task, int(original.plan.peak_bytes * LESS_MEMORY), original.plan.peak_bytes)
    if less is not None:
        others["less memory"] = Other(less, original.feeds)
    example = task.call.example(task.program, task.types)
    if isinstance(task, Computation) and (plain := unrolled(request, task.program, example)) is not None:
        with suppress(OverBudget):
            steps = _task(plain)
            plan = compile_call(CompileRequest(steps.program, steps.types, steps.call, LIMITS)).plan
            others["written out"] = Other(
                plan, dict(steps.tensors), finite=True, differentiates=request.call != "forward"
            )
    return others


def ordinary(types: Mapping[int, TensorType]) -> dict[Hashable, HostArray]:
    """Random numbers for leaves whose types alone are in the request."""
    rng = np.random.default_rng(0)
    return {i: numbers(rng, Operand("real", t.shape, -2.0, 2.0), t.dtype, "tame") for i, t in types.items()}


def _within(task: Computation | Planning, memory: int, peak: int) -> Plan | None:
    """The plan within `memory` bytes, or within the least possible memory; None if that is the `peak`."""
    try:
        return compile_call(CompileRequest(task.program, task.types, task.call, LIMITS, memory=memory)).plan
    except OverMemory as error:
        least = error.peak or peak
    except OverBudget:
        return None
    return _within(task, least, memory) if memory < least < peak else None


def _exported(task: Differentiation) -> Planned:
    """The gradients from the exported graph, and from the call itself."""
    whole = compile_call(CompileRequest(task.program, task.types, task.call, LIMITS))
    exported = export_gradients(task.program, task.types, task.call, LIMITS)
    by_node = {gradient: node for node, gradient in reversed(exported.gradients)}
    program = Program(registry(), exported.statements, LIMITS, opset=LATEST, functions=exported.functions)
    compiled: Compiled = compile_call(
        CompileRequest(program, task.types, Values.of_program(program, list(by_node)), LIMITS)
    )
    kinds = {label.nodes[0]: i for i, label in enumerate(whole.labels) if label.kind == "gradients"}
    graph, feeds = graph_of(whole.plan, registry()), ordinary(task.types)
    # The loss may contain an index out of range, which a gradient that does not read it never evaluates.
    gradients = dce(graph.with_nodes(graph.nodes, [graph.outputs[kinds[node]] for node in by_node.values()]))
    return Planned(compiled.plan, feeds, others={"exported": Other(make_plan(gradients, LIMITS), feeds)})
