"""Tiered execution: bound plans are run, and compiled ones take their places, alike on processors and on cards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import ClassVar

from engine.executors.binding import Binder
from engine.executors.instance_pool import InstancePool, ReadyPlan
from engine.executors.interpreter import Executor, Observer
from engine.executors.stopwatch import Stopwatch
from engine.executors.tiers import ExecutionTier, ExecutionTiers
from engine.executors.witness import witness
from engine.graph.limits import NO_DEADLINE, Deadline
from engine.graph.op import Array
from engine.graph.run_tier import COMPILED, UNCOMPILED
from engine.planning.plan import Plan


class TieredExecutor(Executor):
    """Base: a plan is bound to memory of its own, which `instances` keep for its next run where they have room."""

    #: whether a plan that may never run again is run step by step: a card's runs need their pieces for deadlines
    begins_unbound: ClassVar[bool] = False
    instances: InstancePool
    #: which way a plan runs; None where nothing is compiled, and `_without` binds all
    _tiers: ExecutionTiers | None
    _without: Binder

    @abstractmethod
    def bind(self, plan: Plan, binder: Binder) -> ReadyPlan:
        """A plan made ready to run again and again."""

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """As its parent; step by step where somebody looks on, and at first: many graphs come once, and binding costs
        more than a run.
        """
        if watch is not None:
            deadline.ran(UNCOMPILED)
            return self.interpret(plan, feeds, deadline, watch)
        if self._tiers is None:
            return self._run(ExecutionTier(plan, self._without), feeds, deadline)
        tier = self._tiers.current(plan)
        deadline.ran(tier.name)
        if tier.name is UNCOMPILED and self.begins_unbound and self._tiers.is_first(plan):
            results = self.interpret(plan, feeds, deadline, stopwatch := Stopwatch())
            self._tiers.ran(plan, stopwatch.seconds)
            return results
        results = self._run(tier, feeds, deadline)
        if tier.name is not COMPILED:
            self._tiers.ran(plan)
        return results

    def condemn(self, digest: bytes) -> None:
        """As its parent."""
        if self._tiers is not None:
            self._tiers.condemn(digest)

    def _run(self, tier: ExecutionTier, feeds: Mapping[Hashable, Array], deadline: Deadline) -> list[Array]:
        plan, binder, _ = tier
        prepared = self.instances.lend(plan) or self.bind(plan, binder)
        witness.runs(plan.digest)
        try:
            return prepared.run(feeds, deadline)
        finally:
            witness.ran()
            self.instances.give(plan, prepared)

    def settle(self) -> None:
        """Wait until nothing is being compiled."""
        if self._tiers is not None:
            self._tiers.settle()

    def close(self, timeout: float | None = None) -> bool:
        """Compile nothing more, and wait for the kernel that is being compiled."""
        return self._tiers is None or self._tiers.close(timeout)
