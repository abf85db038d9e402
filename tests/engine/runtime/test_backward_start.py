"""Start of the backward pass: it is detected and recorded, and nothing else changes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from engine import Compiled, Compiler, Deadline, Limits, Program, Statement, TensorType, registry
from engine.compiler.plan import Step
from engine.ir.run_context import RunContext
from engine.runtime.binding import Binder
from engine.runtime.numpy_backend import NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan

X = np.linspace(0.1, 1.0, 8)


def compiled(*, gradients: bool) -> Compiled:
    """Compile sum(exp(sin x)·x)."""
    ops = registry().ops
    operands: list[tuple[str, tuple[int, ...]]] = [("sin", (0,)), ("exp", (1,)), ("mul", (2, 0)), ("sum", (3,))]
    statements = [Statement(ops["parameter"]), *(Statement(ops[name], inputs) for name, inputs in operands)]
    compiler, program = Compiler(Limits(), kernel_threads=0), Program(registry(), statements)
    types = {0: TensorType.of(X)}
    return compiler.gradients(program, types) if gradients else compiler.forward(program, types)


class BackwardLog(Deadline):
    """Lists events: True for a call of the backward pass, False for another call, and "backward"."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        super().__init__(3600.0)
        self.seen: list[object] = []

    def begin_backward(self) -> None:
        super().begin_backward()
        self.seen.append("backward")


def events_of(compilation: Compiled) -> list[object]:
    deadline = BackwardLog()

    class LoggingBinder(Binder):
        def calls(self, run: RunContext, step: Step, operands: Any, out: Any) -> Any:
            is_backward = step.origin is not None and step.origin.backward
            return [(deadline.seen.append, (is_backward,)), *super().calls(run, step, operands, out)]

    PreparedPlan(compilation.plan, NumPyExecutor(), LoggingBinder()).run({0: X}, deadline)
    return deadline.seen


def test_backward_pass_starts_once_before_its_first_step() -> None:
    events = events_of(compiled(gradients=True))
    start = events.index("backward")
    assert True not in events[:start]
    assert events[start + 1] is True
    assert events.count("backward") == 1
    assert start > 0


def test_forward_pass_does_not_start_a_backward_pass() -> None:
    assert "backward" not in events_of(compiled(gradients=False))


def test_deadline_records_the_start_of_the_backward_pass() -> None:
    executor = NumPyExecutor()
    before, deadline = time.monotonic(), Deadline(3600.0)
    executor.run(compiled(gradients=True).plan, {0: X}, deadline)
    assert deadline.backward_start is not None
    assert before <= deadline.backward_start <= time.monotonic()
    other = Deadline(3600.0)
    executor.run(compiled(gradients=False).plan, {0: X}, other)
    assert other.backward_start is None
