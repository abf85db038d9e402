from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from engine import Certificate, Deadline, Gradients, HostArray, Program, certify, graph_id
from service.calls.check import CheckCall
from service.calls.estimate import Estimate
from service.executions.execution import CallExecution, Engine, cost_of_analysis
from service.wire.answers import AnswerBody, RunStats, stats_fields, write_answer
from service.wire.request import ParsedRequest


@dataclass(frozen=True)
class Checking:
    """Gradients to compare with differences."""

    program: Program
    feeds: Mapping[int, HostArray]
    call: Gradients
    directions: int
    tolerance: float
    memory_budget: int | None = None


class CheckExecution(CallExecution[Checking, Checking, tuple[Certificate, RunStats]]):
    """A certificate for gradients."""

    description = CheckCall

    def read_call(self, request: ParsedRequest) -> Checking:
        """Feeds, gradients, and how thoroughly."""
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
        """Every link of the chain is compared in each direction."""
        return cost_of_analysis(ready.program, 10 * ready.directions)

    def run_call(self, ready: Checking, engine: Engine, deadline: Deadline) -> tuple[Certificate, RunStats]:
        """The certificate."""
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
        found, stats = outcome
        answer = {
            "passed": found.passed,
            "errors": [{"node": node, "relative_error": error} for node, error in found.errors],
            "uncertified": [open_._asdict() for open_ in found.uncertified],
            "directions": ready.directions,
            "tolerance": found.tolerance,
            "stats": stats_fields(stats),
        }
        return write_answer(answer, encoding)
