"""Plans bound by kernels at once, with a count of the steps that Python makes for the runner: what tests look at."""

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
    """A plan bound by kernels; `step_by_step`: with loops of the same kernels, that Python goes through.

    `paused` are the steps of bodies that Python makes for the runner, `made` counts how often it has.
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
        """Copies of what it gives."""
        with self._counting("__call__", "made"):
            results = self.prepared.run({feed: asked.feeds[feed] for feed in self.plan.feeds}, deadline)
        return [np.array(x) for x in results]

    @contextmanager
    def _counting(self, method: str, count: str) -> Iterator[None]:
        """Of steps with operands: others stand for loops within."""
        before = getattr(PythonStep, method)

        def counted(step: PythonStep, *given: Any) -> None:
            before(step, *given)
            setattr(self, count, getattr(self, count) + bool(step._operands))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PythonStep, method, counted)
            yield


def compiled(asked: Written, call: Call | None = None) -> Plan:
    """The plan of a call, by default for the values of all results, with kernels in the bodies."""
    wanted = Values.of_program(asked.program, asked.results) if call is None else call
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, wanted).plan
    return make_plan(with_compiled_bodies(graph_of(plan, registry())), NO_LIMITS)
