"""Which way a plan runs: by NumPy at first, and by compiled kernels once that is worth the compiling."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Final, Literal, NamedTuple, Protocol

from engine.executors.binding import Binder
from engine.executors.compiling import BackgroundCompiler
from engine.executors.witness import witness
from engine.loops.kernel_errors import KernelUnavailable
from engine.ops import registry
from engine.planning.fit import compiled_within
from engine.planning.fused import Fused
from engine.planning.plan import Plan, graph_of
from engine.planning.tiled import Tiled

Determinism = Literal["fast", "bitwise"]

#: FLOPs from which the first run is reason enough
LARGE: Final = 10_000_000
#: reasons that are remembered as said
MOST_SAID: Final = 256

_logger = logging.getLogger("gradserve.kernels")


class LoopKernels(Protocol):
    """Makes the kernels of plans for one device: `engine.executors.kernels` has those of processors."""

    @property
    def threads(self) -> int:
        """What may take part in a loop."""

    @property
    def makes_tiles(self) -> bool:
        """Whether there are kernels of their shapes for single ops, too."""

    @property
    def without(self) -> Binder:
        """Binds plans of which nothing is compiled."""

    def compile(self, plan: Plan, closing: Callable[[], bool] = ...) -> Binder | None:
        """Binds a plan's loops by kernels; None where `closing` came true meanwhile. Raises KernelUnavailable."""


class Tier(NamedTuple):
    """A plan as it runs: itself or one in its place, and what binds its steps."""

    plan: Plan
    binder: Binder


class _Twin:
    """How a plan fares: its runs, and what takes its place, as soon as there is something. Known by its identity."""

    __slots__ = ("asked", "binder", "instead", "lock", "runs", "spared")

    def __init__(self) -> None:
        self.runs = 0
        self.asked = False
        self.binder: Binder | None = None  # of the plan itself
        self.instead: Tier | None = None
        self.spared = False  # whether it is to have no kernels
        self.lock = Lock()

    def ask_again(self) -> None:
        """It was not compiled, since others came first."""
        self.asked = False


class Tiers:
    """Plans, and the compiled ones in their places.

    `fast`: a plan runs by NumPy until its kernels arrive from the background, so that its bits may change once.
    `bitwise`: it is decided before the first run. What fusion pays for at once is compiled then, and nothing else ever.
    """

    def __init__(
        self,
        kernels: LoopKernels,
        determinism: Determinism = "fast",
        replaced: Callable[[Plan], object] = lambda plan: None,
    ) -> None:
        """`replaced` is called with each plan that is not run any more."""
        self._kernels = kernels
        self._compiler = BackgroundCompiler()
        self._is_fast = determinism == "fast"
        self._replaced = replaced
        self._twins: weakref.WeakKeyDictionary[Plan, _Twin] = weakref.WeakKeyDictionary()
        self._said: set[str] = set()
        self._condemned: frozenset[bytes] = frozenset()
        self._lock = Lock()

    def current(self, plan: Plan) -> Tier:
        """How to run this plan."""
        twin = self._twins.get(plan) or self._begin(plan)
        if plan.digest in self._condemned:
            return self._spared(plan, twin)
        if not self._is_fast:
            return Tier(plan, self._decided(plan, twin))
        return twin.instead or Tier(plan, self._kernels.without)

    def is_first(self, plan: Plan) -> bool:
        """Whether a plan has not run yet, as far as is known, and nothing is made for it before it has."""
        twin = self._twins.get(plan)
        return self._is_fast and twin is not None and twin.runs == 0 and twin.instead is None

    def ran(self, plan: Plan) -> None:
        """It has run once more, and is compiled if that is worth it: not during its first run, which it would slow."""
        twin = self._twins.get(plan)
        if twin is None or not self._is_fast or twin.asked or twin.instead is not None:
            return
        twin.runs += 1
        if twin.runs >= 2 or plan.flops >= LARGE:
            self._ask(plan, twin)

    def condemn(self, digest: bytes) -> None:
        """From now on, plans of this digest run by NumPy alone."""
        self._condemned |= {digest}

    def settle(self) -> None:
        """Wait until nothing is being compiled."""
        self._compiler.settle()

    def close(self, timeout: float | None = None) -> bool:
        """Compile nothing more, and wait for the kernel that is being compiled; False where that took too long."""
        return self._compiler.close(timeout)

    def _begin(self, plan: Plan) -> _Twin:
        with self._lock:
            return self._twins.setdefault(plan, _Twin())

    def _spared(self, plan: Plan, twin: _Twin) -> Tier:
        """A plan that has ended processes: one like it, which nobody has bound by kernels, takes its place."""
        with twin.lock:
            if not twin.spared or twin.instead is None:
                twin.instead, twin.spared = Tier(replace(plan), self._kernels.without), True
                self._replaced(plan)
            return twin.instead

    def _ask(self, plan: Plan, twin: _Twin) -> None:
        """Have a plan compiled, unless nobody wants it any more by then. Where the queue is full, its next run asks."""
        wanted = weakref.ref(plan)
        twin.asked = True
        if not self._compiler.submit(twin, lambda: self._promote(wanted(), twin), twin.ask_again):
            twin.asked = False

    def _promote(self, plan: Plan | None, twin: _Twin) -> None:
        """Fuse and tile all that can be, and compile it. Raises KernelUnavailable."""
        if plan is None:
            return
        kernels = self._kernels
        graph = graph_of(plan, registry())
        within = compiled_within(graph, plan.peak_bytes, kernels.threads, tiles=kernels.makes_tiles)
        chosen = replace(within or plan, digest=plan.digest)
        if any(isinstance(step.op, (Fused, Tiled)) for step in chosen.steps):
            binder = self._compiled(chosen, plan)
            if binder is not None and not twin.spared:
                twin.instead = Tier(chosen, binder)
                self._replaced(plan)

    def _compiled(self, chosen: Plan, plan: Plan) -> Binder | None:
        witness.compiles(plan.digest)
        try:
            return self._kernels.compile(chosen, lambda: self._compiler.closing)
        finally:
            witness.compiles()

    def _decided(self, plan: Plan, twin: _Twin) -> Binder:
        """What binds a plan, whoever asks first: others wait, so that all compute the same."""
        with twin.lock:
            if twin.binder is None:
                twin.binder = self._decide(plan)
            return twin.binder

    def _decide(self, plan: Plan) -> Binder:
        try:
            return self._kernels.compile(plan) or self._kernels.without
        except KernelUnavailable as error:
            self._say(str(error))
        except Exception as error:  # a fault of ours, or of the compiler: no request is to fail for it
            _logger.debug("the kernels of a plan failed", exc_info=True)
            self._say(f"{type(error).__name__}: {error}")
        return self._kernels.without

    def _say(self, reason: str) -> None:
        """One line for each reason."""
        if reason not in self._said and len(self._said) < MOST_SAID:
            self._said.add(reason)
            _logger.warning("kernels are not compiled, and NumPy computes them: %s", reason)
