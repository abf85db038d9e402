"""Requests in the engine's terms: read as a server reads them, and planned."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple

import numpy as np

from engine import (
    LATEST,
    Compiled,
    EngineError,
    HostArray,
    Plan,
    Program,
    TensorType,
    Values,
    analyse,
    export_gradients,
    registry,
)
from engine.graph.sample import Operand
from engine.planning.compiler import compile_call
from service.calls import calls
from service.calls.check import Checking
from service.calls.computing import Execution
from service.calls.differentiate import Differentiation
from service.calls.plan import Planning
from service.errors import Refusal, from_engine
from service.wire.graph_source import Programs
from service.wire.message import Message
from service.wire.request import RequestReader
from service.wire.translate import Translator
from tests.fuzz.graphs import LIMITS, Request
from tests.fuzz.values import numbers

_TRANSLATOR: Final = Translator(registry(), LIMITS)
_READER: Final = RequestReader(_TRANSLATOR, Programs(_TRANSLATOR, 1, 1 << 20, 64), LIMITS, LIMITS.nodes)


class Refused(NamedTuple):
    """A problem report, as far as it is the engine's to say."""

    code: str
    detail: str
    node: int | None
    operand: int | None
    expected: str | None
    got: str | None


class Planned(NamedTuple):
    """What a request comes to: a plan, and what it is fed; and the certificate that was asked for, if it was.

    Where a graph was exported, `whole` is the plan of the call itself, whose results `at` are those of `plan`.
    """

    plan: Plan
    feeds: Mapping[Hashable, HostArray]
    check: Checking | None = None
    whole: Plan | None = None
    at: tuple[int, ...] = ()


def refused(error: EngineError | Refusal) -> Refused:
    """What a client reads."""
    report = from_engine(error) if isinstance(error, EngineError) else error
    return Refused(report.code, report.detail, report.node, report.operand, report.expected, report.got)


def planned(request: Request) -> Planned:
    """The plan of a request. Raises EngineError and Refusal, as a server would refuse it."""
    definition = calls()[request.call]
    opened = _READER.open(Message(request.body), definition.request, definition.roles, lambda _: None, packed=False)
    task = definition.read_task(opened)
    if isinstance(task, Execution):
        return Planned(compile_call(task.program, task.types, task.call, LIMITS).plan, dict(task.tensors))
    if isinstance(task, Checking):
        types = {node: TensorType.of(array) for node, array in task.feeds.items()}
        return Planned(compile_call(task.program, types, task.call, LIMITS).plan, dict(task.feeds), task)
    if isinstance(task, Differentiation):
        return _exported(task)
    assert isinstance(task, Planning), f"{request.call} is a call of a new kind: say here how it is run"
    found = compile_call(task.program, task.types, task.call, LIMITS)
    foretold = analyse(task.program, task.types, task.call, LIMITS).result_types
    assert tuple(foretold) == tuple(found.plan.result_types), "the analysis has other types than the plan"
    return Planned(found.plan, ordinary(task.types))


def ordinary(types: Mapping[int, TensorType]) -> dict[Hashable, HostArray]:
    """Numbers for leaves of which a request states the types alone."""
    rng = np.random.default_rng(0)
    return {i: numbers(rng, Operand("real", t.shape, -2.0, 2.0), t.dtype, "tame") for i, t in types.items()}


def _exported(task: Differentiation) -> Planned:
    """The gradients by the graph that `differentiate` writes, and by the call itself."""
    whole = compile_call(task.program, task.types, task.call, LIMITS)
    exported = export_gradients(task.program, task.types, task.call, LIMITS)
    by_node = {gradient: node for node, gradient in reversed(exported.gradients)}
    program = Program(registry(), exported.statements, LIMITS, opset=LATEST)
    found: Compiled = compile_call(program, task.types, Values.of_program(program, list(by_node)), LIMITS)
    kinds = {label.nodes[0]: i for i, label in enumerate(whole.labels) if label.kind == "gradients"}
    at = tuple(kinds[node] for node in by_node.values())
    return Planned(found.plan, ordinary(task.types), None, whole.plan, at)
