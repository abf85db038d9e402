"""Which way a plan runs: by NumPy at first, and by compiled kernels once that is worth the compiling."""

from __future__ import annotations

import logging
import weakref
from dataclasses import replace
from threading import Lock
from typing import Final, Literal

from engine.executors.compiling import BackgroundCompiler
from engine.executors.kernels import Kernels
from engine.graph.limits import NO_END, Limits
from engine.loops.kernel_errors import KernelUnavailable
from engine.ops import registry
from engine.planning.fuse import fuse
from engine.planning.fused import Fused
from engine.planning.plan import Plan, graph_of, make_plan

Determinism = Literal["fast", "bitwise"]

#: FLOPs from which the first run is reason enough
LARGE: Final = 10_000_000

_logger = logging.getLogger("gradserve.kernels")


class _Twin:
    """How a plan fares: its runs, and the plan that takes its place, as soon as there is one."""

    __slots__ = ("instead", "plan", "runs")

    def __init__(self, plan: weakref.ref[Plan]) -> None:
        self.plan = plan
        self.runs = 0
        self.instead: Plan | None = None


class Tiers:
    """Plans, and the compiled ones in their places.

    `fast`: a plan runs by NumPy until its kernels arrive from the background, so that its bits may change once.
    `bitwise`: it is decided before the first run. What fusion pays for at once is compiled then, and nothing else ever.
    """

    def __init__(self, kernels: Kernels, determinism: Determinism = "fast") -> None:
        self._kernels = kernels
        self._compiler = BackgroundCompiler()
        self._is_fast = determinism == "fast"
        self._twins: dict[int, _Twin] = {}
        self._lock = Lock()

    def current(self, plan: Plan) -> Plan:
        """The plan to run in the place of this one, which runs once more."""
        twin = self._twins.get(id(plan))
        if twin is None or twin.plan() is not plan:
            twin = self._begin(plan)
        if twin.instead is None and self._is_fast:
            twin.runs += 1
            if twin.runs == 2 or (twin.runs == 1 and plan.flops >= LARGE):
                self._compiler.submit(id(plan), lambda: self._promote(plan, twin))
        return twin.instead or plan

    def settle(self) -> None:
        """Wait until nothing is being compiled."""
        self._compiler.settle()

    def close(self) -> None:
        """Compile nothing more, and wait for what is being compiled."""
        self._compiler.close()

    def _begin(self, plan: Plan) -> _Twin:
        key = id(plan)
        twin = _Twin(weakref.ref(plan, lambda _: self._twins.pop(key, None)))
        if not self._is_fast:
            self._decide(plan, twin)
        with self._lock:
            known = self._twins.get(key)
            if known is None or known.plan() is not plan:
                known = self._twins[key] = twin
            return known

    def _promote(self, plan: Plan, twin: _Twin) -> None:
        """Fuse all that can be, and compile it. Raises KernelUnavailable."""
        chosen = fused_within(graph_of(plan, registry()), plan.peak_bytes) or replace(plan)
        if any(isinstance(step.op, Fused) for step in chosen.steps):
            self._kernels.compile(chosen)
            twin.instead = chosen

    def _decide(self, plan: Plan, twin: _Twin) -> None:
        try:
            self._kernels.compile(plan)
        except KernelUnavailable as error:
            _logger.warning("kernels are not compiled, and NumPy computes them: %s", error)
