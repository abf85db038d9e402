"""Plans bound with native kernels, with counts of the steps that Python runs for the native runner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pytest

from engine import Call, Compiler, Deadline, Values, open_executor, registry
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.plan import Plan, graph_of, make_plan
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS
from engine.runtime.native_bodies import PythonStep
from engine.runtime.numpy_backend import Kernels
from tests.engine.looping import Written

Array = np.ndarray[Any, Any]
_KERNELS: Final = Kernels(KernelStore())
_EXECUTOR: Final = open_executor("cpu")


class Bound:
    """A plan bound with kernels; `step_by_step`: Python drives loops of the same kernels.

    `paused` is the number of body steps that Python runs for the runner, `made` counts how often it ran them.
    """

    def __init__(self, plan: Plan, *, step_by_step: bool = False) -> None:
        self.plan, self.paused, self.made = plan, 0, 0
        with pytest.MonkeyPatch.context() as patch:
            if step_by_step:
                patch.setattr("engine.runtime.numpy_backend.loop_workspaces", lambda *_: {})
            binder = _KERNELS.compile(plan)
        assert binder is not None
        self.binder = binder
        with self._counting("__init__", "paused"):
            self.prepared = _EXECUTOR.bind(plan, binder)

    def run(self, asked: Written, deadline: Deadline = NO_DEADLINE) -> list[Array]:
        """Run the plan and return copies of its results."""
        with self._counting("__call__", "made"):
            results = self.prepared.run({feed: asked.feeds[feed] for feed in self.plan.feeds}, deadline)
        return [np.array(x) for x in results]

    @contextmanager
    def _counting(self, method: str, count: str) -> Iterator[None]:
        """Count calls on steps with operands; steps without stand for inner loops."""
        original = getattr(PythonStep, method)

        def counting(step: PythonStep, *arguments: Any) -> None:
            original(step, *arguments)
            setattr(self, count, getattr(self, count) + bool(step._operands))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PythonStep, method, counting)
            yield


def compiled(asked: Written, call: Call | None = None) -> Plan:
    """Return the plan of a call with kernels in the bodies; by default the call for the values of all results."""
    requested = Values.of_program(asked.program, asked.results) if call is None else call
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, requested).plan
    return make_plan(with_compiled_bodies(graph_of(plan, registry())), NO_LIMITS)
