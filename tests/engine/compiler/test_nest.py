"""Checkpointed loops match whole loops, with all kinds of carries, sequences and stacks, for every length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import HVP, Batch, Call, Gradients, Hessian, Limits, Values
from engine.autodiff.calls.derivatives import VECTORS
from engine.compiler.compiler import CompileRequest, plan_call, plan_within
from engine.compiler.plan import Plan
from tests.contract.cases import EXECUTOR, LARGE, assert_planned_peak_holds
from tests.engine.looping import Array, Write, Writer, Written, direction, same, written

#: with a divisor near the square root, without one near it, and prime
LENGTHS = [16, 100, 101, 130, 257]
K, Y = np.float64(0.7), np.linspace(0.1, 1.0, 3)


def planned(case: Written, call: Call, levels: int) -> Plan:
    """The plan of a call with its loops checkpointed at this many levels."""
    return plan_call(CompileRequest(case.program, case.types, call, Limits(), levels=levels))[1]


def run(case: Written, call: Call, levels: int, extra_feeds: dict[Any, Array] | None = None) -> list[Array]:
    """Run the plan of a call."""
    plan, feeds = planned(case, call, levels), {**case.feeds, **(extra_feeds or {})}
    results: list[Array] = EXECUTOR.run(plan, {feed: feeds[feed] for feed in plan.feeds})
    return results


def assert_agrees(case: Written, levels: int) -> None:
    """Assert that checkpointed loops give the same values bit for bit, and the same gradients."""
    values, gradients = Values.of_program(case.program, case.results), Gradients.of_program(case.program)
    same(run(case, values, levels), run(case, values, 0), 0, "values")
    same(run(case, gradients, levels), run(case, gradients, 0), 1e-12, "gradients")


def decay(g: Writer, k: int, y: int) -> Sequence[int]:
    """A step of one carry."""
    return [g.sub(y, g.mul_scalar(g.mul(k, g.sin(y)), scalar=0.01))]


def decaying(length: int, **more: Any) -> Write:
    """A loop with only a carry."""
    return lambda g, k, y: g.scan(k, y, body=decay, carries=1, length=length, **more)


def rich(g: Writer, k: int, x: int, n: int, s: int, t: int) -> Sequence[int]:
    """Two carries, one of them whole numbers, two sequences, and two stacks."""
    moved = g.add(g.mul(x, g.cos(k)), g.mul(s, t))
    return [moved, g.add(n, g.number(2, "int64")), g.mul(moved, s), g.mul(n, n)]


def rich_loop(*, reverse: bool) -> Write:
    """A loop over sequences."""
    return lambda g, *leaves: g.scan(*leaves, body=rich, carries=2, sequences=2, reverse=reverse)


def rich_arrays(length: int) -> list[Any]:
    """Operands of the rich loop."""
    rng = np.random.default_rng(length)
    return [K, Y, np.int64(3), rng.standard_normal((length, 3)), rng.standard_normal(length)]


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_carries_sequences_and_stacks(length: int, levels: int, reverse: bool) -> None:
    assert_agrees(written(rich_loop(reverse=reverse), *rich_arrays(length), floats=(0, 2)), levels)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("length", [1, 15, *LENGTHS])
def test_loop_with_only_a_carry(length: int, levels: int) -> None:
    assert_agrees(written(decaying(length), K, Y), levels)


@pytest.mark.parametrize("levels", [1, 2])
def test_nested_loops(levels: int) -> None:
    def outer(g: Writer, k: int, y: int, s: int) -> Sequence[int]:
        (inner,) = g.scan(k, g.add(y, s), body=decay, carries=1, length=20)
        return [inner, g.sum(inner)]

    def looped(g: Writer, k: int, y: int, s: int) -> Sequence[int]:
        results: list[int] = g.scan(k, y, s, body=outer, carries=1, sequences=1, reverse=True)
        return results

    assert_agrees(written(looped, K, Y, np.linspace(-1, 1, 37)), levels)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("mapped", [(0,), (1,), (0, 1)])
def test_batches(levels: int, mapped: tuple[int, ...]) -> None:
    arrays = [np.stack([x, x + 1]) if i in mapped else x for i, x in enumerate((np.array(0.7), Y))]
    case = written(decaying(50), *arrays)
    call = Batch.of_program(case.program, case.types, mapped)
    same(run(case, call, levels), run(case, call, 0), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 2])
def test_second_order(levels: int) -> None:
    case = written(rich_loop(reverse=False), *rich_arrays(40), floats=(0, 2))
    call = Hessian.of_program(case.program)
    same(run(case, call, levels), run(case, call, 0), 1e-12)
    vectors = {(VECTORS, node): direction(case.feeds[node], node) for node in case.floats}
    along = HVP.along(case.program, tuple((node, case.types[node]) for node in case.floats))
    same(run(case, along, levels, vectors), run(case, along, 0, vectors), 1e-12)


def test_checkpointing_memory_grows_as_a_root_of_the_length() -> None:
    case = written(decaying(4096), K, Y)
    whole, once, twice = (planned(case, Gradients.of_program(case.program), levels) for levels in range(3))
    carry = Y.nbytes
    assert whole.peak_bytes > 4096 * carry
    assert once.peak_bytes < 6 * 64 * carry
    assert twice.peak_bytes < 10 * 16 * carry
    assert whole.flops < once.flops < 1.6 * whole.flops
    assert once.flops < twice.flops < 2.2 * whole.flops


@pytest.mark.parametrize("memory", [None, 16 << 20, 1 << 18])
def test_plan_size_does_not_grow_with_the_loop_length(memory: int | None) -> None:
    def steps(length: int) -> int:
        case = written(decaying(length), K, Y)
        call = Gradients.of_program(case.program)
        return len(plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=memory)).plan.steps)

    assert steps(10**6) <= steps(10) + 4


def test_a_million_steps_in_16_megabytes() -> None:
    case = written(decaying(10**6), K, Y)
    call = Gradients.of_program(case.program)
    fitted = plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=16 << 20))
    assert fitted.fastest.peak_bytes > 16 << 20 >= fitted.plan.peak_bytes
    assert 0 < fitted.plan.recomputed_flops < fitted.fastest.flops


def test_second_order_through_ten_thousand_steps() -> None:
    case = written(decaying(10**4), K, Y)
    call = Hessian.of_program(case.program)
    fitted = plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=1 << 18))
    assert fitted.fastest.peak_bytes > 1 << 18 >= fitted.plan.peak_bytes


def test_ten_thousand_steps_in_64_kib_give_the_same() -> None:
    case = written(decaying(10**4), K, Y)
    call = Gradients.of_program(case.program)
    fitted = plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=1 << 16))
    assert fitted.fastest.peak_bytes > 1 << 16 >= fitted.plan.peak_bytes
    (value, *gradients), (expected, *others) = (EXECUTOR.run(p, case.feeds) for p in (fitted.plan, fitted.fastest))
    same([value], [expected], 0)
    same(gradients, others, 1e-12)


@pytest.mark.slow
def test_measured_peak_of_a_checkpointed_loop_matches_the_plan() -> None:
    def looped(g: Writer, k: int, y: int) -> Sequence[int]:
        results: list[int] = g.scan(k, y, body=lambda g, k, y: [g.mul(k, y)], carries=1, length=300)
        return results

    case = written(looped, K, np.linspace(0.1, 1.0, 2 * 10**5))
    call = Gradients.of_program(case.program)
    plan = plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=100_000_000)).plan
    assert LARGE < plan.peak_bytes <= 100_000_000
    EXECUTOR.run(plan, case.feeds)
    assert_planned_peak_holds(plan, case.feeds)


def above(g: Writer, _: int, y: int) -> Sequence[int]:
    """The loop condition: the sum exceeds one half."""
    return [g.greater(g.sum(y), g.number(0.5))]


def test_while_is_not_checkpointed() -> None:
    def looped(g: Writer, k: int, y: int) -> Sequence[int]:
        results: list[int] = g.while_(k, y, condition=above, body=decay, carries=1, max_steps=4096)
        return results

    case = written(looped, K, Y, floats=(0,))
    call = Gradients.of_program(case.program)
    whole, pieces = (planned(case, call, levels) for levels in (0, 2))
    assert whole.peak_bytes == pieces.peak_bytes
