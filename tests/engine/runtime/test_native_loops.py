"""Native loops give the same results as loops run step by step, with any body."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import (
    Batch,
    Call,
    Compiler,
    Deadline,
    DeadlineExceeded,
    Gradients,
    Hessian,
    Limits,
    Values,
    open_executor,
)
from engine.codegen.native.native_call import IS_SUPPORTED
from engine.ir.errors import IndexOutOfRange
from engine.ir.run_report import COMPILED
from tests.engine.looping import EXECUTOR, Array, Write, Writer, Written, random, same, written

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_SUPPORTED, reason="no runner for this machine")]

NATIVE = open_executor("cpu", compile="on")


def compiled_run(asked: Written, call: Call) -> Callable[[Deadline], list[Array]]:
    """Return a plan's run once its loops are machine code."""
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    for _ in range(3):
        for _ in range(2):
            NATIVE.run(plan, feeds)
        NATIVE.settle()
    return lambda deadline: NATIVE.run(plan, feeds, deadline)


def assert_matches_steps(asked: Written, *calls: Call, within: float = 1e-12) -> None:
    """Assert that calls give the same results as step by step, repeatedly."""
    for call in calls:
        plan = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan
        expected = EXECUTOR.run(plan, {feed: asked.feeds[feed] for feed in plan.feeds})
        run = compiled_run(asked, call)
        for _ in range(2):
            deadline = Deadline(600)
            same(run(deadline), expected, within)
            assert deadline.tier == COMPILED


def step(g: Writer, k: int, y: int) -> list[int]:
    return [g.add(y, g.mul_scalar(g.mul(k, g.sin(y)), scalar=0.3))]


def nested(depth: int, *reverse: int) -> Write:
    """Return nested scans of two steps each; those at the depths in `reverse` run backwards."""
    if depth == 0:
        return step
    inner = nested(depth - 1, *reverse)
    return lambda g, k, y: list(g.scan(g.cos(k), y, body=inner, carries=1, length=2, reverse=depth in reverse))


@pytest.mark.parametrize("reverse", [(), (1,), (2,), (1, 2)])
def test_nested_loops_to_second_order(reverse: tuple[int, ...]) -> None:
    """A body's buffers before its results may be larger than an entry of a stack."""
    asked = written(nested(2, *reverse), 0.8, 0.5)
    assert_matches_steps(asked, Hessian.of_program(asked.program))


def test_three_nested_loops() -> None:
    asked = written(nested(3, 2), 0.8, 0.5)
    assert_matches_steps(asked, Gradients.of_program(asked.program))


def tangled(g: Writer, a: int, x: int, y: int, z: int, s: int) -> list[int]:
    """Carries that swap places, inputs as results, and repeated results."""
    new = g.mul(g.add(a, x), g.sin(y))
    return [y, new, g.mul(z, z), s, new, new, x]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_swapped_carries_and_repeated_results(length: int, reverse: bool) -> None:
    asked = written(
        lambda g, *given: g.scan(*given, body=tangled, carries=3, sequences=1, reverse=reverse),
        *(0.3, 0.5, -0.4, 0.8, random(length)),
    )
    assert_matches_steps(asked, Gradients.of_program(asked.program, outputs=asked.results))


def recurrent(g: Writer, w: int, h: int, x: int) -> list[int]:
    new = g.tanh(g.add(g.matmul(w, h), x))
    return [new, g.cat(new, x, axis=0), g.sum(g.mul(h, x))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mapped", [None, [0], [1], [2], [0, 1, 2]])
def test_matrix_products_and_their_batches(dtype: str, mapped: list[int] | None) -> None:
    shapes = [(3, 3), (3,), (4, 3)]
    arrays = [
        random(*(() if mapped is None or i not in mapped else (2,)), *shape, seed=i, dtype=dtype)
        for i, shape in enumerate(shapes)
    ]
    asked = written(lambda g, w, h, x: g.scan(w, h, x, body=recurrent, carries=1, sequences=1, reverse=True), *arrays)
    call: Call = Gradients.of_program(asked.program)
    if mapped is not None:
        call = Batch.of_program(asked.program, asked.types, mapped)
    assert_matches_steps(asked, call, within=1e-12 if dtype == "float64" else 2e-5)


def counting(g: Writer, k: int, x: int, i: int, bits: int) -> list[int]:
    new = g.add(x, g.mul(k, g.cast(i, dtype="float64")))
    return [new, g.add(i, g.number(1, "int64")), g.mul(bits, g.number(2654435761, "uint32"))]


@pytest.mark.parametrize("most", [0, 1, 4, 9])
def test_while_loops_that_converge_or_reach_their_bound(most: int) -> None:
    asked = written(
        lambda g, *given: g.while_(
            *given,
            condition=lambda g, k, x, i, bits: [g.less(x, g.number(3.0))],
            body=counting,
            carries=3,
            max_steps=most,
        ),
        *(0.6, 0.7, np.int64(0), np.uint32(7)),
        floats=[0],
    )
    assert_matches_steps(asked, Gradients.of_program(asked.program, outputs=asked.results))


def test_batched_while_loops_end_at_different_steps() -> None:
    ks, xs = np.array([0.6, 0.1, 2.0]), np.array([0.7, 0.1, 5.0])
    asked = written(
        lambda g, *given: g.while_(
            *given,
            condition=lambda g, k, x, i, bits: [g.less(x, g.number(3.0))],
            body=counting,
            carries=3,
            max_steps=9,
        ),
        *(ks, xs, np.int64(0), np.uint32(7)),
        floats=[0],
    )
    assert_matches_steps(asked, Batch.of_program(asked.program, asked.types, [0, 1]))


def chosen(g: Writer, k: int, x: int) -> list[int]:
    return list(
        g.cond(
            g.less(x, k),
            k,
            x,
            then=lambda g, k, x: [g.mul(g.sqrt(g.sub(k, x)), g.number(2.0))],
            otherwise=lambda g, k, x: [g.mul(x, g.exp(g.neg(x)))],
        )
    )


def test_conds_in_scans() -> None:
    asked = written(lambda g, k, x: g.scan(k, x, body=chosen, carries=1, length=6), 0.5, 0.1)
    assert_matches_steps(asked, Gradients.of_program(asked.program, outputs=asked.results))


def test_fixed_point_in_a_map() -> None:
    def solved(g: Writer, k: int, m: int) -> list[int]:
        return g.fixed_point(
            k, m, m, body=lambda g, k, m, x: [g.add(m, g.mul(k, g.sin(x)))], carries=1, tolerance=1e-13, max_steps=99
        )[:1]

    asked = written(lambda g, k, m: g.map(k, m, body=solved, sequences=1, at_once=2), 0.4, random(5))
    assert_matches_steps(asked, Gradients.of_program(asked.program, outputs=asked.results), within=1e-11)


def gathered(g: Writer, k: int, i: int, x: int) -> list[int]:
    return [g.add(i, g.number([1], "int64")), g.add(x, g.gather(k, i, axis=0))]


def test_index_out_of_range_in_a_later_step() -> None:
    for length in (3, 4):
        asked = written(
            lambda g, k, i, x: g.scan(k, i, x, body=gathered, carries=2, length=length)[1:],  # noqa: B023
            *(random(3), np.array([0]), np.zeros(1)),
        )
        if length == 3:
            assert_matches_steps(asked, Gradients.of_program(asked.program, outputs=asked.results))
            continue
        with pytest.raises(IndexOutOfRange) as caught:
            compiled_run(asked, Values.of_program(asked.program, asked.results))
        assert (caught.value.node, caught.value.function, caught.value.function_node) == (3, 0, 5)


def test_out_of_range_index_fails_one_run_only() -> None:
    """The same compiled plan: a run that is refused, and the next run that is not."""
    asked = written(
        lambda g, k, i, x: g.scan(k, i, x, body=gathered, carries=2, length=2)[1:],
        *(random(3), np.array([1]), np.zeros(1)),
    )
    plan = Compiler(Limits()).forward(asked.program, asked.types, asked.results).plan
    expected = EXECUTOR.run(plan, asked.feeds)
    for _ in range(3):
        NATIVE.run(plan, asked.feeds)
        NATIVE.settle()
    for _ in range(2):
        with pytest.raises(IndexOutOfRange) as caught:
            NATIVE.run(plan, {**asked.feeds, 1: np.array([2])})
        assert (caught.value.node, caught.value.function, caught.value.function_node) == (3, 0, 5)
        same(NATIVE.run(plan, asked.feeds), expected, 0)


@pytest.mark.parametrize("depth", [1, 2])
def test_deadline_ends_a_native_loop(depth: int) -> None:
    """Nested loops, too; and the plan can run again."""

    def counting_loop(g: Writer, limit: int, x: int) -> list[int]:
        return g.while_(
            limit,
            x,
            condition=lambda g, limit, x: [g.less(x, limit)],
            body=lambda g, limit, x: [g.add_scalar(x, scalar=1.0)],
            carries=1,
            max_steps=10**15,
        )[:1]

    write = (
        counting_loop if depth == 1 else lambda g, limit, x: g.scan(limit, x, body=counting_loop, carries=1, length=2)
    )
    asked = written(write, 3.0, 0.0, floats=(), limits=Limits(flops=1 << 90))
    plan = Compiler(asked.program.limits).forward(asked.program, asked.types, asked.results).plan
    for _ in range(3):
        NATIVE.run(plan, asked.feeds)
        NATIVE.settle()
    for _ in range(2):
        with pytest.raises(DeadlineExceeded):
            NATIVE.run(plan, {**asked.feeds, 0: np.array(1e15)}, Deadline(0.01))
        deadline = Deadline(600)
        assert NATIVE.run(plan, asked.feeds, deadline) == [3.0]
        assert deadline.tier == COMPILED
