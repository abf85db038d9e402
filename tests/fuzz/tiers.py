"""The ways to run a plan: each has an executor, and may replace the plan by an equivalent one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import pytest

from engine import HostArray, Plan, registry
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import BLOCK_ELEMENTS, Fused, MicrokernelOp, select_microkernels
from engine.compiler.fusion import fuse
from engine.compiler.plan import graph_of, make_plan
from engine.compiler.sums import split_sums
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, aligned
from engine.runtime import prepared_plan
from engine.runtime.interpreter import Buffer, Executor, Observer
from engine.runtime.numpy_backend import Kernels, NumPyExecutor, kernel_ops
from engine.runtime.tiers import ExecutionTier
from tests.engine.guarded import guarded
from tests.fuzz.values import Array

#: how a way's results must agree with those of NumPy step by step
Likeness = Literal["bits", "close"]
PLENTY: Final = 1 << 40
#: elements of a small block, so that small sums have many blocks
SMALL_BLOCK: Final = 1 << 11
#: content of the bytes between allocated memory and its guard page
_UNTOUCHED: Final = 0xA5


@dataclass(frozen=True)
class Way:
    """One way of running a plan, several times; the ways of one `family` give the same bits.

    `instead` returns the plan to run in place of the original; None if that would be the same.
    """

    name: str
    family: str
    executor: Callable[[KernelStore], Executor]
    instead: Callable[[Plan], Plan | None] = field(default=lambda plan: plan)
    likeness: Likeness = "close"
    runs: int = 2


class Interpreting(NumPyExecutor):
    """NumPy, step by step: the reference for all other ways."""

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """Run the plan by `interpret`."""
        return self.interpret(plan, feeds, deadline, watch)


class Compiling(NumPyExecutor):
    """Runs a plan with all kernels compiled from the first run on."""

    def __init__(self, store: KernelStore, threads: int = 1) -> None:
        super().__init__(threads)
        self._compiled = Kernels(store, threads)

    def execute(
        self,
        plan: Plan,
        feeds: Mapping[Hashable, Array],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Array]:
        """Run the compiled plan."""
        if watch is not None:
            return self.interpret(plan, feeds, deadline, watch)
        binder = self._compiled.compile(plan)
        assert binder is not None
        return self._run_prepared(ExecutionTier(plan, binder), feeds, deadline)


class Guarding(Compiling):
    """Like its parent, with a guard page behind or before all feeds, workspaces and results."""

    def __init__(self, store: KernelStore, threads: int = 1, *, at_end: bool = True) -> None:
        super().__init__(store, threads)
        self._at_end = at_end
        self._slack: list[HostArray] = []

    def to_device(self, array: Array) -> Array:
        """A copy that ends or begins at a guard page."""
        return guarded(np.asarray(array, order="C"), self._at_end)

    def allocate(self, nbytes: int) -> Buffer:
        """Allocate bytes, followed by slack up to a multiple of `ALIGNMENT` that must not be written."""
        memory = guarded(aligned(nbytes), self._at_end)
        memory[nbytes:] = _UNTOUCHED
        self._slack.append(memory[nbytes:])
        return memory[:nbytes]

    def _run_prepared(self, tier: ExecutionTier, feeds: Mapping[Hashable, Array], deadline: Deadline) -> list[Array]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                prepared_plan,
                "_allocate_together",
                lambda executor, sizes: [executor.allocate(nbytes) for nbytes in sizes],
            )
            results = super()._run_prepared(tier, feeds, deadline)
        assert all((slack == _UNTOUCHED).all() for slack in self._slack), "bytes behind a buffer were written"
        return results


# ---------------------------------------------------------------- equivalent plans


def fused(plan: Plan, *, compiled: bool = False, threads: int = 1, block: int = BLOCK_ELEMENTS) -> Plan | None:
    """The plan with all possible nodes fused, single ones too, with blocks of `block` elements."""
    graph = graph_of(plan, registry())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.compiler.fusion._COSTLY", 0)
        patch.setattr("engine.compiler.fused_kernel.BLOCK_ELEMENTS", block)
        graph = fuse(graph, 0, compiled=compiled, threads=threads)
        if compiled:
            graph = with_compiled_bodies(select_microkernels(graph, PLENTY, threads))
    fused_plan = make_plan(graph, NO_LIMITS)
    return fused_plan if any(kernel_ops(fused_plan)) else None


def partly_compiled(plan: Plan, threads: int = 1) -> Plan | None:
    """The plan with every second kernel compiled, and the rest unchanged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.compiler.fusion._COSTLY", 0)
        within = compiled_within(graph_of(plan, registry()), PLENTY, threads)
    if within is None:
        return None
    ops = dict.fromkeys(step.op for step in within.plan.steps if isinstance(step.op, Fused | MicrokernelOp))
    return within.plan_part([*ops][::2])


def for_a_card(plan: Plan) -> Plan | None:
    """The plan for a card: with split sums, products in the layout of their reader, and few launches."""
    graph = split_sums(graph_of(plan, registry()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.compiler.fusion._COSTLY", 0)
        within = compiled_within(graph, PLENTY, 1, microkernels=False, few_launches=True)
    return within and within.plan


def ways() -> Sequence[Way]:
    """All ways; the first is the reference."""
    chosen = [
        Way("step by step", "numpy", lambda store: Interpreting(), likeness="bits", runs=1),
        Way("prepared_plan", "numpy", lambda store: NumPyExecutor(), likeness="bits"),
        Way("as for a card", "card", partial(_kernels, 1), for_a_card),
    ]
    for n in (1, 2, 3):
        chosen += [
            Way(f"blocks, {n} threads", "blocks", partial(_plain, n), partial(fused, threads=n)),
            Way(f"kernels, {n} threads", "kernels", partial(_kernels, n), partial(fused, compiled=True, threads=n)),
            Way(
                f"guarded, {n} threads",
                "guarded",
                partial(_guarding, n),
                partial(fused, compiled=True, threads=n, block=SMALL_BLOCK),
            ),
            Way(f"half kernels, {n} threads", "half", partial(_kernels, n), partial(partly_compiled, threads=n)),
            Way(f"fast, {n} threads", f"fast {n}", partial(_tiered, "fast", n), runs=4),
            Way(f"bitwise, {n} threads", "bitwise", partial(_tiered, "bitwise", n), partial(fused, threads=n)),
        ]
    return chosen


def _plain(threads: int, _: KernelStore) -> Executor:
    return NumPyExecutor(threads)


def _kernels(threads: int, store: KernelStore) -> Executor:
    return Compiling(store, threads)


def _guarding(threads: int, store: KernelStore) -> Executor:
    return Guarding(store, threads, at_end=threads != 2)


def _tiered(determinism: Any, threads: int, store: KernelStore) -> Executor:
    return NumPyExecutor(threads, None, determinism, store, compile="on")


@contextmanager
def share_small_work() -> Iterator[None]:
    """Let threads share even small work within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.codegen.kernels.compiled.WORTH_THREADS", 0)
        patch.setattr("engine.codegen.microkernels.recipe.WORTH_THREADS", 0)
        patch.setattr("engine.codegen.kernels.blocks.LEAST_SHARED", 0)
        yield
