"""Executions of the calls that report about a graph: plan, check and differentiate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from engine import (
    Analysis,
    Call,
    Certificate,
    Deadline,
    Exported,
    Gradients,
    HostArray,
    Label,
    Program,
    TensorType,
    analyse,
    certify,
    export_gradients,
    graph_id,
    printable,
)
from schemas import Graph, Tensor
from service.api.answers import FIELD_BYTES, AnswerBody, RunStats, int64, stats_fields, write_answer
from service.api.calls.check import CheckCall
from service.api.calls.differentiate import DifferentiateCall
from service.api.calls.plan import PlanCall
from service.api.graphs import write_graph
from service.api.json_codec import json_kind
from service.api.request import ParsedRequest
from service.api.tensors import NodePlace, encode, encoded_bytes
from service.core.errors import Refusal
from service.workers.executions import executions
from service.workers.executions.computing import CallArguments, Computing
from service.workers.executions.execution import CallExecution, Engine, cost_of_analysis
from service.workers.task import Estimate


@dataclass(frozen=True)
class Planning:
    """Call whose cost is asked for, with the `encoding` that its answer would have. Nothing is run."""

    program: Program
    types: Mapping[int, TensorType]
    call: Call
    encoding: str = "json"
    memory_budget: int | None = None


@dataclass(frozen=True)
class Forecast:
    """Cost of a request, whether it is within the limits, and the limits."""

    analysis: Analysis
    response_bytes: int
    admitted: bool
    limits: Mapping[str, int]


class PlanExecution(CallExecution[Planning, Planning, Forecast]):
    """Forecast of a request: shapes, FLOPs and bytes."""

    description = PlanCall

    def read_call(self, request: ParsedRequest) -> Planning:
        """Return the call to be planned; tensors other than feeds have no types yet."""
        named = _computing(request.fields["call"]) if "call" in request.fields else None
        outputs, wrt = request.fields.get("outputs"), request.fields.get("wrt") or request.program.parameters
        planned = named or _computing("gradients" if wrt or "of" in request.fields else "forward")
        described = planned.description
        nodes = {"cotangents": outputs or [len(request.program.statements) - 1], "tangents": wrt, "vectors": wrt}
        # Tensors other than feeds are planned as if all were given, except the optional cotangent of `gradients`.
        taken = () if described.name == "gradients" else described.extra_roles
        unknown = TensorType((), np.dtype(np.float64))
        other_types = {
            role: tuple((node, unknown) for node in nodes[role] if role in taken) for role in described.extra_roles
        }
        call = planned.call(CallArguments(request.program, request.types, request.fields, other_types))
        return Planning(request.program, request.types, call, request.encoding, request.memory_budget)

    def run_call(self, ready: Planning, engine: Engine, deadline: Deadline) -> Forecast:
        """Analyse the call; to exceed a limit of bytes or FLOPs is no error here."""
        memory = ready.memory_budget
        analysis = analyse(engine.compiler.request(ready.program, ready.types, ready.call, deadline, memory=memory))
        _check_extents(analysis, ready.program)
        response = FIELD_BYTES + encoded_bytes(analysis.result_types, ready.encoding)
        admitted = analysis.within and response <= engine.max_response_bytes
        return Forecast(analysis, response, admitted, engine.limits)

    def write_body(self, outcome: Forecast, ready: Planning, encoding: str) -> AnswerBody:
        """Write the costs, node by node and in total."""
        analysis, statements = outcome.analysis, ready.program.statements
        nodes = [
            {
                "node": cost.node,
                "op": statements[cost.node].op.name,
                "dtype": cost.type.dtype.name,
                "shape": list(cost.type.shape),
                "flops": int64(cost.flops),
                "bytes": int64(cost.type.nbytes),
            }
            for cost in analysis.nodes
        ]
        answer: dict[str, Any] = {
            "nodes": nodes,
            "forward_flops": int64(analysis.forward_flops),
            "backward_flops": int64(analysis.backward_flops),
            "recomputed_flops": int64(analysis.recomputed_flops),
            "saved_bytes": int64(analysis.saved_bytes),
            "peak_bytes": int64(analysis.peak_bytes),
            "fastest_flops": int64(analysis.fastest_flops),
            "fastest_peak_bytes": int64(analysis.fastest_peak_bytes),
            "response_bytes": int64(outcome.response_bytes),
            "stops_gradient": list(analysis.stops_gradient),
            "admitted": outcome.admitted,
            "limits": dict(outcome.limits),
        }
        if analysis.blocks is not None:
            answer |= {"block": analysis.blocks.block, "blocks": analysis.blocks.count}
        return write_answer(answer, encoding)


def _check_extents(analysis: Analysis, program: Program) -> None:
    """Raise Refusal for an extent of more than 64 bits, which clients could not read. Bytes are not limited here."""
    for cost in analysis.nodes:
        if max(cost.type.shape, default=0) >= 2**63:
            detail = f"node {cost.node} ({program.statements[cost.node].op.name}) has an extent beyond 64 bits"
            raise Refusal("over_budget", detail, node=cost.node, expected="extents of 64 bits", got="a larger one")


def _computing(name: object) -> Computing:
    """Return the execution of the call of this name. Raises Refusal."""
    known = {call: execution for call, execution in executions().items() if isinstance(execution, Computing)}
    if isinstance(name, str) and name in known:
        return known[name]
    expected = f"one of {', '.join(known)}"
    received = f"“{printable(name)}”" if isinstance(name, str) else json_kind(name)
    detail = f"call must be {expected}, but is {received}"
    raise Refusal("invalid_field", detail, expected=expected, got=received, pointer="/call")


@dataclass(frozen=True)
class Checking:
    """Gradients to be compared with finite differences."""

    program: Program
    feeds: Mapping[int, HostArray]
    call: Gradients
    directions: int
    tolerance: float
    memory_budget: int | None = None


class CheckExecution(CallExecution[Checking, Checking, tuple[Certificate, RunStats]]):
    """Certificate for gradients."""

    description = CheckCall

    def read_call(self, request: ParsedRequest) -> Checking:
        """Return feeds and gradients, and how thorough the check is."""
        program = request.program
        return Checking(
            program=program,
            feeds=request.feeds,
            call=Gradients.of_program(program, *request.get("of", "wrt")),
            directions=request.number("directions", 4, 1, 64),
            tolerance=request.number("tolerance", 1e-6, 1e-12, 1.0),
            memory_budget=request.memory_budget,
        )

    def cost(self, ready: Checking) -> Estimate:
        """Estimate the work: every node on the way is compared in each direction."""
        return cost_of_analysis(ready.program, 10 * ready.directions)

    def run_call(self, ready: Checking, engine: Engine, deadline: Deadline) -> tuple[Certificate, RunStats]:
        """Certify the gradients."""
        started, limits = time.perf_counter(), engine.compiler.limits
        certificate = certify(
            engine.executor,
            ready.program,
            ready.feeds,
            ready.call,
            ready.directions,
            ready.tolerance,
            limits,
            deadline,
            ready.memory_budget,
        )
        elapsed = 1000 * (time.perf_counter() - started)
        return certificate, RunStats(
            device=engine.executor.device,
            plan_cached=False,
            execute_ms=round(elapsed, 4),
            report=deadline.report,
            peak_bytes=certificate.peak_bytes,
            recomputed_flops=certificate.recomputed_flops,
            graph_id=graph_id(ready.program),
            opset=ready.program.opset,
            dtype="float64",
        )

    def write_body(self, outcome: tuple[Certificate, RunStats], ready: Checking, encoding: str) -> AnswerBody:
        """Write the certificate: the error of each gradient, and the nodes that were not compared."""
        certificate, stats = outcome
        answer = {
            "passed": certificate.passed,
            "errors": [{"node": node, "relative_error": error} for node, error in certificate.errors],
            "uncertified": [open_._asdict() for open_ in certificate.uncertified],
            "directions": ready.directions,
            "tolerance": certificate.tolerance,
            "stats": stats_fields(stats),
        }
        return write_answer(answer, encoding)


@dataclass(frozen=True)
class Differentiation:
    """Gradients to be exported as a graph."""

    program: Program
    types: Mapping[int, TensorType]
    call: Gradients
    graph: Graph


class DifferentiateExecution(CallExecution[Differentiation, Differentiation, Exported]):
    """Gradient as a graph."""

    description = DifferentiateCall

    def read_call(self, request: ParsedRequest) -> Differentiation:
        """Return the gradients, with the types of the leaves."""
        program = request.program
        call = Gradients.of_program(program, *request.get("of", "wrt"))
        return Differentiation(program, request.types, call, request.graph)

    def run_call(self, ready: Differentiation, engine: Engine, deadline: Deadline) -> Exported:
        """Export the gradient as a program."""
        return export_gradients(ready.program, ready.types, ready.call, engine.compiler.limits, deadline)

    def write_body(self, outcome: Exported, ready: Differentiation, encoding: str) -> AnswerBody:
        """Write the graph; if the constants came beside the JSON, they are returned beside it."""
        constants: list[tuple[Label, HostArray]] = []

        def value(place: NodePlace, array: HostArray) -> Tensor | None:
            if encoding != "binary":
                return cast("Tensor", encode(array, encoding))
            constants.append((Label(place.kind("constants"), (place.node,)), array))
            return None

        answer = {
            "graph": write_graph(ready.graph, outcome.statements, outcome.functions, value),
            "gradients": [{"node": node, "gradient_node": gradient} for node, gradient in outcome.gradients],
            "disconnected": list(outcome.disconnected),
        }
        return write_answer(answer, encoding, constants)
