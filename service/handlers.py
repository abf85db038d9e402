"""The use-cases: what each call does, in the engine's terms. They know no HTTP and no wire messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine import (
    Analysis,
    Certificate,
    Compiled,
    Compiler,
    Deadline,
    Exported,
    Label,
    NonfiniteWatch,
    OverBudget,
    analyse,
    certify,
    export_gradients,
    graph_id,
)
from engine.executors.interpreter import Executor
from engine.tools.diagnose import Nonfinite
from service.asks import Check, Compute, Differentiate, Plan
from service.tensors import Array, encoded_bytes

#: bytes that answers have in common: their fields, and the statistics
_FIELDS: Final = 640


@dataclass(frozen=True)
class Stats:
    """What an execution took, and what it takes to have the same again."""

    device: str
    plan_cached: bool
    execute_ms: float
    peak_bytes: int
    graph_id: str
    dtype: str
    first_nonfinite: Nonfinite | None = None


@dataclass(frozen=True)
class Result:
    """Arrays and what they are, in the order of the answer; `disconnected` is None where there are no gradients."""

    arrays: list[tuple[Label, Array]]
    disconnected: Sequence[int] | None
    stats: Stats


@dataclass(frozen=True)
class Forecast:
    """What a request would take, and whether it is within the budgets."""

    analysis: Analysis
    response_bytes: int
    admitted: bool


@dataclass(frozen=True)
class Handlers:
    """The use-cases on one device."""

    compiler: Compiler
    executor: Executor
    max_response_bytes: int

    def compute(self, ask: Compute, deadline: Deadline) -> Result:
        """Values and derivatives. Raises EngineError."""
        compiled = self.compiler.compile(ask.program, ask.types, ask.call, deadline)
        self._admit_answer(compiled, ask.encoding)
        watch = NonfiniteWatch(ask.program, ask.tensors) if ask.diagnose else None
        started = time.perf_counter()
        arrays = self.executor.run(compiled.plan, ask.tensors, deadline, watch)
        elapsed = 1000 * (time.perf_counter() - started)
        stats = Stats(
            device=self.executor.device,
            plan_cached=compiled.cached,
            execute_ms=round(elapsed, 4),
            peak_bytes=compiled.plan.peak_bytes,
            graph_id=compiled.graph_id,
            dtype=compiled.dtype,
            first_nonfinite=None if watch is None else watch.found,
        )
        named = list(zip(compiled.labels, arrays, strict=True))
        return Result(named, compiled.disconnected if _has_gradients(compiled) else None, stats)

    def plan(self, ask: Plan, deadline: Deadline) -> Forecast:
        """What a call would take. Raises EngineError, but not for what is over a budget of bytes or FLOPs."""
        analysis = analyse(ask.program, ask.types, ask.call, self.compiler.limits, deadline)
        response = _FIELDS + encoded_bytes(analysis.result_types, ask.encoding)
        return Forecast(analysis, response, analysis.within and response <= self.max_response_bytes)

    def check(self, ask: Check, deadline: Deadline) -> tuple[Certificate, Stats]:
        """Gradients against differences. Raises EngineError."""
        started = time.perf_counter()
        certificate = certify(
            self.executor,
            ask.program,
            ask.feeds,
            ask.call,
            ask.directions,
            ask.tolerance,
            self.compiler.limits,
            deadline,
        )
        elapsed = 1000 * (time.perf_counter() - started)
        peak, identity = certificate.peak_bytes, graph_id(ask.program)
        return certificate, Stats(self.executor.device, False, round(elapsed, 4), peak, identity, "float64")

    def differentiate(self, ask: Differentiate, deadline: Deadline) -> Exported:
        """The gradient as a program. Raises EngineError."""
        return export_gradients(ask.program, ask.types, ask.call, self.compiler.limits, deadline)

    def _admit_answer(self, compiled: Compiled, encoding: str) -> None:
        """Refuse an answer that could get too long, before anything is computed."""
        count = _FIELDS + encoded_bytes(compiled.plan.result_types, encoding)
        if count > self.max_response_bytes:
            shorter = ", or for base64" if encoding == "json" else ""
            raise OverBudget(
                f"the answer may need {count} bytes, and the limit is {self.max_response_bytes}; ask for fewer "
                f"outputs or gradients{shorter}",
                expected=f"at most {self.max_response_bytes} bytes",
                got=f"{count} bytes",
            )


def _has_gradients(compiled: Compiled) -> bool:
    return any(label.kind == "gradients" for label in compiled.labels)
