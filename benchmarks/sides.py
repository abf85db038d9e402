"""Who runs the workloads: the engine, and what all sides have in common."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.recorder import Recorded, Recorder
from benchmarks.turns import Call
from benchmarks.workload import Array, Question, Workload
from engine import (
    LATEST,
    Batch,
    Compiler,
    Gradients,
    Jacobian,
    Limits,
    Plan,
    Program,
    TensorType,
    Values,
    open_executor,
    registry,
)
from engine import Call as Asked

LIMITS = Limits(nodes=10_000_000, bytes=64 << 30, flops=10**15)


@dataclass(frozen=True)
class Prepared:
    """A side that is ready: `call` goes from resident operands to finished results, `read` turns them into arrays.

    Of a workload that is `from_host`, both are arrays of the host, and `read` leaves them as they are.
    `seconds` has what came before, by its name: plan or compile, and the first run.
    """

    seconds: dict[str, float]
    call: Call
    read: Callable[[Any], list[Array]]


Prepare = Callable[[Workload, str], Prepared]


def timed(stage: str, seconds: dict[str, float], call: Callable[[], Any]) -> Any:
    """What `call` returns; `seconds` learns how long it took."""
    start = time.perf_counter()
    result = call()
    seconds[stage] = time.perf_counter() - start
    return result


def gradserve(work: Workload, device: str) -> Prepared:
    """The engine."""
    seconds: dict[str, float] = {}
    compiler = Compiler(LIMITS, splits_sums=device == "cuda" and work.compiled)
    plan = timed("plan", seconds, lambda: planned(compiler, work))
    call, settle, read = engine_call(plan, work.arrays, device, compiled=work.compiled, from_host=work.from_host)
    timed("first run", seconds, call)
    timed("settle", seconds, settle)
    return Prepared(seconds, call, read)


def planned(compiler: Compiler, work: Workload) -> Plan:
    """The workload's plan, for the precision and within the memory that it has."""
    program, types, asked = recorded(work)
    return compiler.compile(program, types, asked, memory=work.memory, precision=work.precision).plan


def engine_call(
    plan: Plan, arrays: Sequence[Array], device: str, *, compiled: bool = True, from_host: bool = False
) -> tuple[Callable[[], list[Array]], Call, Callable[[Any], list[Array]]]:
    """How the engine runs a plan on resident operands, what waits until it will not get faster by itself, and what
    copies results to where they can be read, which on a card is no part of a run, on any side.
    """
    executor = open_executor(device, len(os.sched_getaffinity(0)), compile="on" if compiled else "off")
    feeds: dict[Hashable, Any] = {i: a if from_host else executor.to_device(a) for i, a in enumerate(arrays)}

    def call() -> list[Array]:
        if from_host:
            return executor.run(plan, feeds)
        results = executor.execute(plan, feeds)
        executor.to_host(())  # they are complete
        return results

    def settle() -> None:
        for _ in range(3):
            call()
        executor.settle()

    return call, settle, list if from_host else executor.to_host


def recorded(work: Workload) -> tuple[Program, dict[int, TensorType], Asked]:
    """The workload as a client would send it: statements, the types of the feeds, and the call."""
    ops = Recorder()
    leaves = [ops.parameter() for _ in work.parameters] + [ops.input() for _ in work.data]
    results = work.function_for("gradserve")(ops, *leaves)
    several = list(results) if isinstance(results, list | tuple) else [results]
    gradients = _gradients_of_each(ops, several, leaves[: len(work.parameters)], work.question)
    program = Program(registry(), ops.statements, LIMITS, opset=LATEST, functions=ops.functions)
    types = {i: TensorType.of(a) for i, a in enumerate(work.arrays)}
    return program, types, _asked(work, program, types, [x.node for x in (*several, *gradients)])


def _gradients_of_each(
    ops: Recorder, several: Sequence[Recorded], parameters: Sequence[Recorded], question: Question
) -> list[Recorded]:
    if question is not Question.ROWS:
        return []
    return [ops.grad(y, x) for y in several for x in parameters]


def _asked(work: Workload, program: Program, types: dict[int, TensorType], outputs: list[int]) -> Asked:
    if work.question is Question.JACOBIAN:
        return Jacobian.of_program(program, outputs=outputs)
    if work.question is Question.GRADIENTS:
        return Gradients.of_program(program, outputs[0])
    if work.question is Question.EXAMPLES:
        return Batch.of_program(program, types, range(len(work.parameters), len(work.arrays)), outputs[0])
    return Values.of_program(program, outputs)


def is_installed(module: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(module) is not None
