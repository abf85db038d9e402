"""The use-cases: what each call does, in the engine's terms. They know no HTTP and no wire messages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine import (
    COTANGENT,
    Compiled,
    Compiler,
    Deadline,
    OverBudget,
    Program,
    TensorType,
)
from engine.executors.base import Executor
from service.tensors import Array, encoded_bytes


@dataclass(frozen=True)
class ForwardCall:
    """Values of `outputs` (None or empty: the last node) of a program on these feeds."""

    program: Program
    feeds: Mapping[int, Array]
    outputs: Sequence[int] | None = None
    encoding: str = "json"

    @property
    def types(self) -> dict[int, TensorType]:
        """The types of the feeds."""
        return {node: TensorType.of(array) for node, array in self.feeds.items()}


@dataclass(frozen=True)
class GradientsCall(ForwardCall):
    """As ForwardCall, and the gradients of `of` with respect to `wrt`, seeded with `cotangent`."""

    of: int | None = None
    wrt: Sequence[int] | None = None
    cotangent: Array | None = None


@dataclass(frozen=True)
class Stats:
    """What an execution took."""

    device: str
    plan_cached: bool
    execute_ms: float
    peak_bytes: int


@dataclass(frozen=True)
class Result:
    """Arrays by node, in the order of the request; `gradients` is None where none were asked for."""

    values: list[tuple[int, Array]]
    stats: Stats
    gradients: list[tuple[int, Array]] | None = None
    disconnected: Sequence[int] = ()


@dataclass(frozen=True)
class Handlers:
    """The use-cases on one device."""

    compiler: Compiler
    executor: Executor
    max_response_bytes: int

    def forward(self, call: ForwardCall, deadline: Deadline) -> Result:
        """Values of nodes. Raises EngineError."""
        compiled = self.compiler.forward(call.program, call.types, call.outputs, deadline)
        arrays, stats = self._run(compiled, call, call.feeds, deadline)
        return Result(list(zip(compiled.outputs, arrays, strict=True)), stats)

    def gradients(self, call: GradientsCall, deadline: Deadline) -> Result:
        """Values of nodes and gradients. Raises EngineError."""
        seed = None if call.cotangent is None else TensorType.of(call.cotangent)
        compiled = self.compiler.gradients(call.program, call.types, call.of, call.wrt, call.outputs, seed, deadline)
        feeds: dict[Any, Array] = dict(call.feeds)
        if call.cotangent is not None:
            feeds[COTANGENT] = call.cotangent
        arrays, stats = self._run(compiled, call, feeds, deadline)
        count = len(compiled.outputs)
        return Result(
            values=list(zip(compiled.outputs, arrays[:count], strict=True)),
            stats=stats,
            gradients=list(zip(compiled.wrt, arrays[count:], strict=True)),
            disconnected=compiled.disconnected,
        )

    def _run(
        self, compiled: Compiled, call: ForwardCall, feeds: Mapping[Any, Array], deadline: Deadline
    ) -> tuple[list[Array], Stats]:
        self._admit_answer(compiled, call.encoding)
        started = time.perf_counter()
        arrays = self.executor.run(compiled.plan, feeds, deadline)
        elapsed = 1000 * (time.perf_counter() - started)
        device, peak = self.executor.device, compiled.plan.peak_bytes
        return arrays, Stats(device, compiled.cached, round(elapsed, 4), peak)

    def _admit_answer(self, compiled: Compiled, encoding: str) -> None:
        """Refuse an answer that could get too long, before anything is computed."""
        count = encoded_bytes(compiled.plan.result_types, encoding)
        if count > self.max_response_bytes:
            raise OverBudget(
                f"the answer may need {count} bytes, and the limit is {self.max_response_bytes}; ask for fewer "
                "outputs or gradients, or for base64",
                expected=f"at most {self.max_response_bytes} bytes",
                got=f"{count} bytes",
            )
