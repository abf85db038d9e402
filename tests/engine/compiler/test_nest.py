"""Loops in pieces give what whole loops give, whatever they carry, read and stack, and however many steps there are."""

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

#: with a divisor near the root, without one near it, and without any
LENGTHS = [16, 100, 101, 130, 257]
K, Y = np.float64(0.7), np.linspace(0.1, 1.0, 3)


def planned(asked: Written, call: Call, levels: int) -> Plan:
    """The plan of a call whose loops are in pieces, at so many levels."""
    return plan_call(CompileRequest(asked.program, asked.types, call, Limits(), levels=levels))[1]


def run(asked: Written, call: Call, levels: int, beside: dict[Any, Array] | None = None) -> list[Array]:
    """What it answers."""
    plan, feeds = planned(asked, call, levels), {**asked.feeds, **(beside or {})}
    found: list[Array] = EXECUTOR.run(plan, {feed: feeds[feed] for feed in plan.feeds})
    return found


def agree(asked: Written, levels: int) -> None:
    """Whether pieces give the same values, bit for bit, and the same gradients."""
    values, gradients = Values.of_program(asked.program, asked.results), Gradients.of_program(asked.program)
    same(run(asked, values, levels), run(asked, values, 0), 0, "values")
    same(run(asked, gradients, levels), run(asked, gradients, 0), 1e-12, "gradients")


def decay(g: Writer, k: int, y: int) -> Sequence[int]:
    """A step of one carry."""
    return [g.sub(y, g.mul_scalar(g.mul(k, g.sin(y)), scalar=0.01))]


def decaying(length: int, **more: Any) -> Write:
    """A loop of nothing but a carry."""
    return lambda g, k, y: g.scan(k, y, body=decay, carries=1, length=length, **more)


def rich(g: Writer, k: int, x: int, n: int, s: int, t: int) -> Sequence[int]:
    """Two carries, one of them whole numbers, two sequences, and two stacks."""
    moved = g.add(g.mul(x, g.cos(k)), g.mul(s, t))
    return [moved, g.add(n, g.number(2, "int64")), g.mul(moved, s), g.mul(n, n)]


def rich_loop(*, reverse: bool) -> Write:
    """A loop over sequences."""
    return lambda g, *leaves: g.scan(*leaves, body=rich, carries=2, sequences=2, reverse=reverse)


def rich_arrays(length: int) -> list[Any]:
    """What it reads."""
    rng = np.random.default_rng(length)
    return [K, Y, np.int64(3), rng.standard_normal((length, 3)), rng.standard_normal(length)]


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_carries_sequences_and_stacks(length: int, levels: int, reverse: bool) -> None:
    agree(written(rich_loop(reverse=reverse), *rich_arrays(length), floats=(0, 2)), levels)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("length", [1, 15, *LENGTHS])
def test_a_carry_alone(length: int, levels: int) -> None:
    agree(written(decaying(length), K, Y), levels)


@pytest.mark.parametrize("levels", [1, 2])
def test_loops_within_loops(levels: int) -> None:
    def outer(g: Writer, k: int, y: int, s: int) -> Sequence[int]:
        (inner,) = g.scan(k, g.add(y, s), body=decay, carries=1, length=20)
        return [inner, g.sum(inner)]

    def looped(g: Writer, k: int, y: int, s: int) -> Sequence[int]:
        found: list[int] = g.scan(k, y, s, body=outer, carries=1, sequences=1, reverse=True)
        return found

    agree(written(looped, K, Y, np.linspace(-1, 1, 37)), levels)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("mapped", [(0,), (1,), (0, 1)])
def test_batches(levels: int, mapped: tuple[int, ...]) -> None:
    arrays = [np.stack([x, x + 1]) if i in mapped else x for i, x in enumerate((np.array(0.7), Y))]
    asked = written(decaying(50), *arrays)
    call = Batch.of_program(asked.program, asked.types, mapped)
    same(run(asked, call, levels), run(asked, call, 0), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 2])
def test_second_order(levels: int) -> None:
    asked = written(rich_loop(reverse=False), *rich_arrays(40), floats=(0, 2))
    call = Hessian.of_program(asked.program)
    same(run(asked, call, levels), run(asked, call, 0), 1e-12)
    vectors = {(VECTORS, node): direction(asked.feeds[node], node) for node in asked.floats}
    along = HVP.along(asked.program, tuple((node, asked.types[node]) for node in asked.floats))
    same(run(asked, along, levels, vectors), run(asked, along, 0, vectors), 1e-12)


def test_pieces_need_the_memory_of_roots() -> None:
    asked = written(decaying(4096), K, Y)
    whole, once, twice = (planned(asked, Gradients.of_program(asked.program), levels) for levels in range(3))
    carry = Y.nbytes
    assert whole.peak_bytes > 4096 * carry
    assert once.peak_bytes < 6 * 64 * carry
    assert twice.peak_bytes < 10 * 16 * carry
    assert whole.flops < once.flops < 1.6 * whole.flops
    assert once.flops < twice.flops < 2.2 * whole.flops


@pytest.mark.parametrize("memory", [None, 16 << 20, 1 << 18])
def test_a_long_loop_has_no_more_steps_than_a_short_one(memory: int | None) -> None:
    def steps(length: int) -> int:
        asked = written(decaying(length), K, Y)
        call = Gradients.of_program(asked.program)
        return len(plan_within(CompileRequest(asked.program, asked.types, call, Limits(), memory=memory)).plan.steps)

    assert steps(10**6) <= steps(10) + 4


def test_a_million_steps_in_16_megabytes() -> None:
    asked = written(decaying(10**6), K, Y)
    call = Gradients.of_program(asked.program)
    found = plan_within(CompileRequest(asked.program, asked.types, call, Limits(), memory=16 << 20))
    assert found.fastest.peak_bytes > 16 << 20 >= found.plan.peak_bytes
    assert 0 < found.plan.recomputed_flops < found.fastest.flops


def test_second_order_through_ten_thousand_steps() -> None:
    asked = written(decaying(10**4), K, Y)
    call = Hessian.of_program(asked.program)
    found = plan_within(CompileRequest(asked.program, asked.types, call, Limits(), memory=1 << 18))
    assert found.fastest.peak_bytes > 1 << 18 >= found.plan.peak_bytes


def test_ten_thousand_steps_in_less_give_the_same() -> None:
    asked = written(decaying(10**4), K, Y)
    call = Gradients.of_program(asked.program)
    found = plan_within(CompileRequest(asked.program, asked.types, call, Limits(), memory=1 << 16))
    assert found.fastest.peak_bytes > 1 << 16 >= found.plan.peak_bytes
    (value, *gradients), (wanted, *others) = (EXECUTOR.run(p, asked.feeds) for p in (found.plan, found.fastest))
    same([value], [wanted], 0)
    same(gradients, others, 1e-12)


@pytest.mark.slow
def test_the_peak_of_a_loop_in_pieces_is_what_is_measured() -> None:
    def looped(g: Writer, k: int, y: int) -> Sequence[int]:
        found: list[int] = g.scan(k, y, body=lambda g, k, y: [g.mul(k, y)], carries=1, length=300)
        return found

    asked = written(looped, K, np.linspace(0.1, 1.0, 2 * 10**5))
    call = Gradients.of_program(asked.program)
    plan = plan_within(CompileRequest(asked.program, asked.types, call, Limits(), memory=100_000_000)).plan
    assert LARGE < plan.peak_bytes <= 100_000_000
    EXECUTOR.run(plan, asked.feeds)
    assert_planned_peak_holds(plan, asked.feeds)


def above(g: Writer, _: int, y: int) -> Sequence[int]:
    """Whether to go on."""
    return [g.greater(g.sum(y), g.number(0.5))]


def test_a_while_stays_whole() -> None:
    def looped(g: Writer, k: int, y: int) -> Sequence[int]:
        found: list[int] = g.while_(k, y, condition=above, body=decay, carries=1, max_steps=4096)
        return found

    asked = written(looped, K, Y, floats=(0,))
    call = Gradients.of_program(asked.program)
    whole, pieces = (planned(asked, call, levels) for levels in (0, 2))
    assert whole.peak_bytes == pieces.peak_bytes
