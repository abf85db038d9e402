"""Scans whose kernels go through steps by themselves give what their steps give."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Batch, Call, Compiler, Deadline, DeadlineExceeded, Gradients, Hessian, Values, open_executor
from engine.codegen.native.native_call import IS_SUPPORTED
from engine.compiler.control_flow import PlannedScan, RunsPlans
from engine.compiler.plan import Plan
from engine.ir.run_context import NO_LIMITS
from engine.ir.run_report import COMPILED
from engine.runtime.tiers import ExecutionTier
from tests.engine.looping import EXECUTOR, Array, Write, Writer, Written, random, same, written

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="no runner for this machine")

NATIVE = open_executor("cpu", compile="on")


def settled(plan: Plan, feeds: dict[object, Array]) -> ExecutionTier:
    """How a plan runs once its loops are machine code."""
    for _ in range(3):
        NATIVE.run(plan, feeds)
        NATIVE.settle()
    assert NATIVE._tiers is not None
    return NATIVE._tiers.current(plan)


def gone_through(tier: ExecutionTier) -> list[bool]:
    """Of each scan, those within others too, whether one kernel goes through its steps."""
    found, todo = [], [tier.plan]
    while todo:
        for step in todo.pop().steps:
            if isinstance(step.op, PlannedScan):
                found.append(tier.binder.step_kernel(step) is not None)
            if isinstance(step.op, RunsPlans) and not (isinstance(step.op, PlannedScan) and found[-1]):
                todo += step.op.plans
    return found


def agrees(asked: Written, call: Call, *wanted: bool) -> None:
    """Whether a call answers as step by step, with scans of which these are gone through by one kernel."""
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    tier = settled(plan, feeds)
    assert gone_through(tier) == [*wanted]
    deadline = Deadline(600)
    same(NATIVE.run(plan, feeds, deadline), EXECUTOR.run(plan, feeds), 1e-13)
    assert deadline.tier == COMPILED


def decay(g: Writer, k: int, y: int) -> list[int]:
    return [g.sub(y, g.mul(k, g.mul_scalar(y, scalar=0.01)))]


def scanned(body: Write, length: int, *, carries: int = 1, **attrs: object) -> Write:
    return lambda g, *given: g.scan(*given, body=body, carries=carries, length=length, **attrs)


@pytest.mark.parametrize("length", [0, 1, 2, 1000])
def test_a_scalar(length: int) -> None:
    asked = written(scanned(decay, length), 0.8, 0.5)
    agrees(asked, Values.of_program(asked.program, asked.results), True)


@pytest.mark.parametrize("length", [0, 1, 7])
def test_the_way_back_of_a_scalar(length: int) -> None:
    asked = written(scanned(decay, length), 0.8, 0.5)
    agrees(asked, Gradients.of_program(asked.program), True, True)


def driven(g: Writer, k: int, y: int, held: int, u: int) -> list[int]:
    """One carry as it was a step before, one that only the last step gives, stacks of both kinds, bools."""
    new = g.add(g.mul(k, y), u)
    return [new, y, g.greater(new, y), new, g.where(g.less(y, new), u, held)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (3, 40)])
def test_stacks_and_sequences(shape: tuple[int, ...], reverse: bool) -> None:
    asked = written(
        lambda g, *given: g.scan(*given, body=driven, carries=2, sequences=1, reverse=reverse),
        *(random(*lead, *shape, seed=i) for i, lead in enumerate([(), (), (), (6,)])),
    )
    agrees(asked, Values.of_program(asked.program, asked.results), True)


def exchanged(g: Writer, x: int, y: int) -> list[int]:
    return [y, x, g.mul(x, y)]


def test_carries_change_places() -> None:
    asked = written(scanned(exchanged, 5, carries=2), 0.3, 0.5)
    agrees(asked, Values.of_program(asked.program, asked.results), True)


def test_examples_side_by_side() -> None:
    asked = written(scanned(decay, 9), random(4), random(4))
    agrees(asked, Batch.of_program(asked.program, asked.types, [0, 1], asked.results[0]), True, True)


def test_bools_among_the_carries() -> None:
    def body(g: Writer, on: int, y: int) -> list[int]:
        return [g.not_(on), g.where(on, g.neg(y), g.add(y, y))]

    asked = written(scanned(body, 6, carries=2), np.True_, 0.3)
    agrees(asked, Values.of_program(asked.program, asked.results), True)


def test_within_another_loop() -> None:
    def outer(g: Writer, k: int, y: int) -> list[int]:
        inner = g.scan(k, g.sum(y), body=decay, carries=1, length=5)
        return [g.add(y, inner[0]), inner[0]]

    asked = written(lambda g, *given: g.scan(*given, body=outer, carries=1, length=4), 0.3, random(3))
    agrees(asked, Values.of_program(asked.program, asked.results), False, True)


def turned(g: Writer, k: int, y: int) -> list[int]:
    return [g.add(y, g.sin(g.mul(k, y)))]


def test_a_step_out_of_range_is_computed_by_other_means_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag is one of the run: what comes after it is the kernel's again."""
    otherwise, repeat = list[None](), PlannedScan.repeat

    def counted(*args: object) -> None:
        otherwise.append(None)
        repeat(*args)  # type: ignore[arg-type]

    asked = written(scanned(turned, 40), 0.5, 0.25)
    plan = Compiler(NO_LIMITS).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results)).plan
    near = {feed: asked.feeds[feed] for feed in plan.feeds}
    far = {**near, min(near): np.array(1e300)}
    assert gone_through(settled(plan, near)) == [True]
    wanted = [EXECUTOR.run(plan, feeds) for feeds in (near, far)]
    monkeypatch.setattr(PlannedScan, "repeat", counted)
    for times, feeds, right in zip((0, 1, 1, 2), (near, far) * 2, wanted * 2, strict=True):
        same(NATIVE.run(plan, feeds), right, 1e-13)
        assert len(otherwise) == times


def test_the_way_back_through_a_while() -> None:
    asked = written(
        lambda g, *given: g.while_(
            *given,
            condition=lambda g, k, y: [g.less(y, g.number(3.0))],
            body=lambda g, k, y: [g.mul(y, k)],
            carries=1,
            max_steps=50,
        ),
        *(1.25, 0.5),
    )
    agrees(asked, Gradients.of_program(asked.program, outputs=asked.results[:1]), True)


def test_pieces_of_steps_are_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the clock there are some of them, and at last fewer."""
    monkeypatch.setattr("engine.runtime.native_loops._CLOCK_CHECK_NANOSECONDS", 30)
    asked = written(
        lambda g, *given: g.scan(*given, body=driven, carries=2, sequences=1, reverse=True),
        *(random(*lead, seed=i) for i, lead in enumerate([(), (), (), (1001,)])),
    )
    agrees(asked, Values.of_program(asked.program, asked.results), True)


def test_a_moment_that_passes_ends_it() -> None:
    asked = written(scanned(decay, 20_000_000), 0.8, 0.5, limits=NO_LIMITS)
    plan = Compiler(NO_LIMITS).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results)).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    assert gone_through(settled(plan, feeds)) == [True]
    for _ in range(2):
        with pytest.raises(DeadlineExceeded):
            NATIVE.run(plan, feeds, Deadline(0.002))
    same(NATIVE.run(plan, feeds), [np.array(0.5 * (1 - 0.008) ** 20_000_000)], 1e-13)


def test_many_elements_and_sums_are_left_to_kernels_of_a_step() -> None:
    for elements in (129, 5000):
        many = written(scanned(decay, 3), random(elements), random(elements))
        agrees(many, Values.of_program(many.program, many.results), False)
    summed = written(
        scanned(lambda g, k, y: [g.mul(y, g.sum(g.mul(k, y), axes=[0], keepdims=True))], 3), random(5), random(5)
    )
    agrees(summed, Values.of_program(summed.program, summed.results), False)


def test_second_order() -> None:
    asked = written(scanned(turned, 5), 0.5, 0.25)
    call = Hessian.of_program(asked.program)
    plan = Compiler(NO_LIMITS).compile(asked.program, asked.types, call).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    assert any(gone_through(settled(plan, feeds)))
    same(NATIVE.run(plan, feeds), EXECUTOR.run(plan, feeds), 1e-12)
