from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from engine import Deadline, Exported, Gradients, HostArray, Label, Program, TensorType, export_gradients
from schemas import Graph, Tensor
from service.calls.differentiate import DifferentiateCall
from service.executions.execution import CallExecution, Engine
from service.wire.answers import AnswerBody, write_answer
from service.wire.node_place import NodePlace
from service.wire.request import ParsedRequest
from service.wire.tensors import encode
from service.wire.translate import written


@dataclass(frozen=True)
class Differentiation:
    """Gradients to export as a graph."""

    program: Program
    types: Mapping[int, TensorType]
    call: Gradients
    graph: Graph


class DifferentiateExecution(CallExecution[Differentiation, Differentiation, Exported]):
    """The gradient as a graph."""

    description = DifferentiateCall

    def read_call(self, request: ParsedRequest) -> Differentiation:
        """The gradients, of leaves of these types."""
        program = request.program
        call = Gradients.of_program(program, *request.get("of", "wrt"))
        return Differentiation(program, request.types, call, request.graph)

    def run_call(self, ready: Differentiation, engine: Engine, deadline: Deadline) -> Exported:
        """The gradient as a program."""
        return export_gradients(ready.program, ready.types, ready.call, engine.compiler.limits, deadline)

    def write_body(self, outcome: Exported, ready: Differentiation, encoding: str) -> AnswerBody:
        """The graph; constants that came beside the JSON go back beside it."""
        constants: list[tuple[Label, HostArray]] = []

        def value(at: NodePlace, array: HostArray) -> Tensor | None:
            if encoding != "binary":
                return cast("Tensor", encode(array, encoding))
            constants.append((Label(at.kind("constants"), (at.node,)), array))
            return None

        answer = {
            "graph": written(ready.graph, outcome.statements, outcome.functions, value),
            "gradients": [{"node": node, "gradient_node": gradient} for node, gradient in outcome.gradients],
            "disconnected": list(outcome.disconnected),
        }
        return write_answer(answer, encoding, constants)
