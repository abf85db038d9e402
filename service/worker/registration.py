"""Registration of a graph: a worker checks it, and writes the record that is answered and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from engine import Deadline, Program, graph_id
from schemas import Graph, Tensor
from schemas.registered import RegisteredGraph, RegisterGraphRequest
from service.calls.description import CallDescription
from service.executions.execution import CallExecution, Engine
from service.transport.job import REGISTER
from service.wire.answers import AnswerBody, write_answer
from service.wire.request import ParsedRequest
from service.wire.tensors import encode
from service.wire.translate import written


@dataclass(frozen=True)
class Registering:
    """A graph to check and to name."""

    program: Program
    graph: Graph
    description: str | None


class RegistrationDescription(CallDescription):
    """Registration of a graph. It is no call of the API: it computes nothing."""

    name = REGISTER
    request = RegisterGraphRequest
    answer = RegisteredGraph
    roles = ("constants",)


class Registration(CallExecution[Registering, Registering, RegisteredGraph]):
    """Call that checks a graph and names it. Whoever asked for it keeps the record that comes back."""

    description = RegistrationDescription

    def read_call(self, request: ParsedRequest) -> Registering:
        """The graph, once it is a program."""
        return Registering(request.program, request.graph, request.fields.get("description"))

    def run_call(self, ready: Registering, engine: Engine, deadline: Deadline) -> RegisteredGraph:
        """Its id, and itself with all of its tensors."""
        described = {} if ready.description is None else {"description": ready.description}
        whole = {
            "node_count": ready.program.size,
            "graph": written(
                ready.graph,
                ready.program.statements,
                ready.program.functions,
                lambda _, array: cast("Tensor", encode(array, "base64")),
            ),
        }
        return cast("RegisteredGraph", {"graph_id": graph_id(ready.program), **described, **whole})

    def write_body(self, outcome: RegisteredGraph, ready: Registering, encoding: str) -> AnswerBody:
        """The record, the graph last."""
        return write_answer(dict(outcome), encoding)
