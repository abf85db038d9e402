"""Scans whose steps run inside one kernel give the same results as step by step."""

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


def compiled_tier(plan: Plan, feeds: dict[object, Array]) -> ExecutionTier:
    """Return how a plan runs once its loops are machine code."""
    for _ in range(3):
        NATIVE.run(plan, feeds)
        NATIVE.settle()
    assert NATIVE._tiers is not None
    return NATIVE._tiers.current(plan)


def runs_inside_kernel(tier: ExecutionTier) -> list[bool]:
    """Return for each scan, inner ones included, whether one kernel runs all of its steps."""
    in_kernel, pending = [], [tier.plan]
    while pending:
        for step in pending.pop().steps:
            if isinstance(step.op, PlannedScan):
                in_kernel.append(tier.binder.step_kernel(step) is not None)
            if isinstance(step.op, RunsPlans) and not (isinstance(step.op, PlannedScan) and in_kernel[-1]):
                pending += step.op.plans
    return in_kernel


def assert_matches_steps(asked: Written, call: Call, *expected: bool) -> None:
    """Assert that a call matches step by step, and which of its scans run inside one kernel."""
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    tier = compiled_tier(plan, feeds)
    assert runs_inside_kernel(tier) == [*expected]
    deadline = Deadline(600)
    same(NATIVE.run(plan, feeds, deadline), EXECUTOR.run(plan, feeds), 1e-13)
    assert deadline.tier == COMPILED


def decay(g: Writer, k: int, y: int) -> list[int]:
    return [g.sub(y, g.mul(k, g.mul_scalar(y, scalar=0.01)))]


def scanned(body: Write, length: int, *, carries: int = 1, **attrs: object) -> Write:
    return lambda g, *operands: g.scan(*operands, body=body, carries=carries, length=length, **attrs)


@pytest.mark.parametrize("length", [0, 1, 2, 1000])
def test_scalar_recurrence(length: int) -> None:
    asked = written(scanned(decay, length), 0.8, 0.5)
    assert_matches_steps(asked, Values.of_program(asked.program, asked.results), True)


@pytest.mark.parametrize("length", [0, 1, 7])
def test_gradient_of_a_scalar_recurrence(length: int) -> None:
    asked = written(scanned(decay, length), 0.8, 0.5)
    assert_matches_steps(asked, Gradients.of_program(asked.program), True, True)


def driven(g: Writer, k: int, y: int, last: int, u: int) -> list[int]:
    """A carry from the previous step, a carry that only the last step sets, stacks of both kinds, and bools."""
    new = g.add(g.mul(k, y), u)
    return [new, y, g.greater(new, y), new, g.where(g.less(y, new), u, last)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (3, 40)])
def test_stacks_and_sequences(shape: tuple[int, ...], reverse: bool) -> None:
    asked = written(
        lambda g, *operands: g.scan(*operands, body=driven, carries=2, sequences=1, reverse=reverse),
        *(random(*lead, *shape, seed=i) for i, lead in enumerate([(), (), (), (6,)])),
    )
    assert_matches_steps(asked, Values.of_program(asked.program, asked.results), True)


def swapped(g: Writer, x: int, y: int) -> list[int]:
    return [y, x, g.mul(x, y)]


def test_swapped_carries() -> None:
    asked = written(scanned(swapped, 5, carries=2), 0.3, 0.5)
    assert_matches_steps(asked, Values.of_program(asked.program, asked.results), True)


def test_batch_of_examples() -> None:
    asked = written(scanned(decay, 9), random(4), random(4))
    assert_matches_steps(asked, Batch.of_program(asked.program, asked.types, [0, 1], asked.results[0]), True, True)


def test_bool_carries() -> None:
    def body(g: Writer, on: int, y: int) -> list[int]:
        return [g.not_(on), g.where(on, g.neg(y), g.add(y, y))]

    asked = written(scanned(body, 6, carries=2), np.True_, 0.3)
    assert_matches_steps(asked, Values.of_program(asked.program, asked.results), True)


def test_nested_in_another_loop() -> None:
    def outer(g: Writer, k: int, y: int) -> list[int]:
        inner = g.scan(k, g.sum(y), body=decay, carries=1, length=5)
        return [g.add(y, inner[0]), inner[0]]

    asked = written(lambda g, *operands: g.scan(*operands, body=outer, carries=1, length=4), 0.3, random(3))
    assert_matches_steps(asked, Values.of_program(asked.program, asked.results), False, True)


def with_sine(g: Writer, k: int, y: int) -> list[int]:
    return [g.add(y, g.sin(g.mul(k, y)))]


def test_step_out_of_range_falls_back_for_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag belongs to one run: the next run uses the kernel again."""
    fallbacks, repeat = list[None](), PlannedScan.repeat

    def counting(*args: object) -> None:
        fallbacks.append(None)
        repeat(*args)  # type: ignore[arg-type]

    asked = written(scanned(with_sine, 40), 0.5, 0.25)
    plan = Compiler(NO_LIMITS).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results)).plan
    in_range = {feed: asked.feeds[feed] for feed in plan.feeds}
    out_of_range = {**in_range, min(in_range): np.array(1e300)}
    assert runs_inside_kernel(compiled_tier(plan, in_range)) == [True]
    expected = [EXECUTOR.run(plan, feeds) for feeds in (in_range, out_of_range)]
    monkeypatch.setattr(PlannedScan, "repeat", counting)
    for count, feeds, reference in zip((0, 1, 1, 2), (in_range, out_of_range) * 2, expected * 2, strict=True):
        same(NATIVE.run(plan, feeds), reference, 1e-13)
        assert len(fallbacks) == count


def test_gradient_of_a_while_loop() -> None:
    asked = written(
        lambda g, *operands: g.while_(
            *operands,
            condition=lambda g, k, y: [g.less(y, g.number(3.0))],
            body=lambda g, k, y: [g.mul(y, k)],
            carries=1,
            max_steps=50,
        ),
        *(1.25, 0.5),
    )
    assert_matches_steps(asked, Gradients.of_program(asked.program, outputs=asked.results[:1]), True)


def test_chunks_of_steps_cover_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps run between two clock checks, and fewer at the end."""
    monkeypatch.setattr("engine.runtime.native_loops._CLOCK_CHECK_NANOSECONDS", 30)
    asked = written(
        lambda g, *operands: g.scan(*operands, body=driven, carries=2, sequences=1, reverse=True),
        *(random(*lead, seed=i) for i, lead in enumerate([(), (), (), (1001,)])),
    )
    assert_matches_steps(asked, Values.of_program(asked.program, asked.results), True)


def test_deadline_ends_the_recurrence() -> None:
    asked = written(scanned(decay, 4_000_000), 0.8, 0.5, limits=NO_LIMITS)
    plan = Compiler(NO_LIMITS).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results)).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    assert runs_inside_kernel(compiled_tier(plan, feeds)) == [True]
    for _ in range(2):
        with pytest.raises(DeadlineExceeded):
            NATIVE.run(plan, feeds, Deadline(0.0004))
    same(NATIVE.run(plan, feeds), [np.array(0.5 * (1 - 0.008) ** 4_000_000)], 1e-13)


def test_large_steps_and_sums_use_step_kernels() -> None:
    for elements in (129, 5000):
        many = written(scanned(decay, 3), random(elements), random(elements))
        assert_matches_steps(many, Values.of_program(many.program, many.results), False)
    summed = written(
        scanned(lambda g, k, y: [g.mul(y, g.sum(g.mul(k, y), axes=[0], keepdims=True))], 3), random(5), random(5)
    )
    assert_matches_steps(summed, Values.of_program(summed.program, summed.results), False)


def test_second_order_derivatives() -> None:
    asked = written(scanned(with_sine, 5), 0.5, 0.25)
    call = Hessian.of_program(asked.program)
    plan = Compiler(NO_LIMITS).compile(asked.program, asked.types, call).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    assert any(runs_inside_kernel(compiled_tier(plan, feeds)))
    same(NATIVE.run(plan, feeds), EXECUTOR.run(plan, feeds), 1e-12)
