"""Costs of loops in plans: FLOPs and bytes before a run, and deadlines that end it early."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from engine import Compiler, Deadline, DeadlineExceeded, Limits, OverBudget, open_executor
from engine.autodiff.control_flow import LEAST_STEP_FLOPS
from engine.compiler.plan import Plan
from engine.runtime.interpreter import Executor
from tests.engine.looping import EXECUTOR, Ticking, Write, Writer, Written, random, written
from tests.engine.printers import PRINTER

MEGABYTES = 1_000_000
WIDE = Limits(flops=1 << 60)


def plan_of(case: Written, *, differentiated: bool = False) -> Plan:
    compiler = Compiler(case.program.limits)
    if differentiated:
        return compiler.gradients(case.program, case.types).plan
    return compiler.forward(case.program, case.types, case.results).plan


# ---------------------------------------------------------------- FLOPs


def cheap(g: Writer, x: int) -> list[int]:
    return [g.add_scalar(x, scalar=1.0)]


def expensive(g: Writer, x: int) -> list[int]:
    """A body of 1,000 FLOPs, plus those of the sum."""
    return [g.sum(g.sin(g.add(x, g.number(np.arange(1000)))))]


def always(g: Writer, *_: int) -> list[int]:
    return [g.number(True, "bool")]


@pytest.mark.parametrize("length", [0, 1, 10, 10**6])
def test_loop_step_has_a_minimum_of_flops(length: int) -> None:
    plan = plan_of(written(lambda g, x: g.scan(x, body=cheap, carries=1, length=length), 0.5, floats=()))
    assert plan.flops == length * LEAST_STEP_FLOPS


def test_scan_flops_are_length_times_step_flops() -> None:
    once = plan_of(written(expensive, 0.5, floats=())).flops
    assert once >= 1000
    plan = plan_of(written(lambda g, x: g.scan(x, body=expensive, carries=1, length=50), 0.5, floats=()))
    assert plan.flops == 50 * once


def test_cond_flops_are_those_of_the_larger_branch() -> None:
    once = plan_of(written(expensive, 0.5, floats=())).flops
    plan = plan_of(
        written(lambda g, p, x: g.cond(p, x, then=cheap, otherwise=expensive), np.bool_(True), 0.5, floats=())
    )
    assert plan.flops == once


def test_nested_loop_lengths_multiply() -> None:
    def inner(g: Writer, x: int) -> list[int]:
        return list(g.scan(x, body=cheap, carries=1, length=7))

    plan = plan_of(written(lambda g, x: g.scan(x, body=inner, carries=1, length=11), 0.5, floats=()))
    assert plan.flops == 7 * 11 * LEAST_STEP_FLOPS


def endless(most: int) -> Write:
    return lambda g, x: g.while_(x, condition=always, body=cheap, carries=1, max_steps=most)


@pytest.mark.parametrize(
    "write",
    [
        endless(10**12),
        lambda g, x: g.scan(x, body=cheap, carries=1, length=10**12),
        lambda g, x: g.fixed_point(x, body=cheap, carries=1, tolerance=0.0, max_steps=10**12),
    ],
)
def test_cheap_loop_is_refused_by_its_step_bound(write: Write) -> None:
    with pytest.raises(OverBudget, match="FLOPs"):
        plan_of(written(write, 0.5, floats=()))


def test_oversized_stack_is_refused_at_its_node() -> None:
    with pytest.raises(OverBudget) as caught:
        plan_of(written(lambda g, x: g.scan(x, body=lambda g, x: [x, x], carries=1, length=10**9), 0.5, floats=()))
    assert caught.value.node == 1


@pytest.mark.parametrize("length", [10**18, 2**61 - 1])
def test_splitting_a_loop_does_not_try_all_divisors(length: int) -> None:
    """There may be 10¹² candidates near the length of a piece."""
    case = written(lambda g, x: g.scan(x, body=lambda g, x: [g.sin(x)], carries=1, length=length), 0.5)
    with pytest.raises(OverBudget):
        plan_of(case, differentiated=True)


def test_gradient_over_the_limit_recomputes_or_is_refused() -> None:
    """The carries of a million steps take 8 kB each; the values alone need no more than two of them."""

    def write(g: Writer, x: int) -> list[int]:
        return list(g.scan(x, body=lambda g, x: [g.sin(x)], carries=1, length=10**6))

    def uncut(g: Writer, x: int) -> list[int]:
        return list(g.while_(x, condition=always, body=lambda g, x: [g.sin(x)], carries=1, max_steps=10**6))

    for each in (write, uncut):
        assert plan_of(written(each, np.zeros(1000), floats=())).peak_bytes < 100_000
    assert plan_of(written(write, np.zeros(1000), floats=[0]), differentiated=True).recomputed_flops > 0
    with pytest.raises(OverBudget) as caught:
        plan_of(written(uncut, np.zeros(1000), floats=[0]), differentiated=True)
    assert caught.value.node == 1


# ---------------------------------------------------------------- time


LONG: dict[str, Write] = {
    "scan": lambda g, x: g.scan(x, body=cheap, carries=1, length=10**9),
    "while": endless(10**9),
    "map": lambda g, x: g.map(
        g.broadcast_to(x, shape=[10**6]),
        body=lambda g, x: g.scan(x, body=cheap, carries=1, length=10**6),
        sequences=1,
        at_once=1,
    ),
    "fixed_point": lambda g, x: g.fixed_point(x, body=cheap, carries=1, tolerance=0.0, max_steps=10**9)[:1],
    "cond": lambda g, x: g.cond(g.less(x, g.number(1.0)), x, then=endless(10**9), otherwise=endless(10**9)),
    "call": lambda g, x: g.call(x, body=endless(10**9), recompute=True),
}


@pytest.mark.parametrize("op", LONG)
def test_deadline_ends_a_loop(op: str) -> None:
    case = written(LONG[op], 0.5, floats=(), limits=WIDE)
    plan = plan_of(case)
    with pytest.raises(DeadlineExceeded) as caught:
        EXECUTOR.run(plan, case.feeds, Ticking(500, seconds=0.05))
    assert caught.value.node is None


@pytest.mark.parametrize("op", ["scan", "while"])
def test_passed_deadline_ends_a_loop(op: str) -> None:
    case = written(LONG[op], 0.5, floats=(), limits=WIDE)
    plan = plan_of(case)
    with pytest.raises(DeadlineExceeded):
        EXECUTOR.run(plan, case.feeds, Deadline(0.05, time.monotonic()))


@pytest.mark.skipif(PRINTER == "llvm", reason="machine code is done before anybody looks; test_native_loops has this")
def test_interrupted_loop_can_run_again() -> None:
    case = written(lambda g, x: g.scan(x, body=cheap, carries=1, length=1000), 0.5, floats=())
    plan = plan_of(case)
    for _ in range(2):
        with pytest.raises(DeadlineExceeded):
            EXECUTOR.run(plan, case.feeds, Ticking(50))
        assert EXECUTOR.run(plan, case.feeds)[0] == 1000.5


# ---------------------------------------------------------------- memory


def tanh(g: Writer, k: int, x: int) -> list[int]:
    return [g.tanh(g.mul(k, x))]


def both(g: Writer, k: int, x: int) -> list[int]:
    return [g.tanh(g.mul(k, x)), g.sin(x)]


def positions(g: Writer, x: int) -> list[int]:
    return [g.cast(g.argsort(x, axis=0), dtype="float64")]


SQUARE = [1000, 1000]


def chosen(g: Writer, k: int, p: int) -> list[int]:
    """Alternate between two branches."""
    return list(
        g.cond(
            p,
            k,
            then=lambda g, k: [g.mul(k, g.broadcast_to(g.sum(k), shape=SQUARE))],
            otherwise=lambda g, k: [g.exp(k)],
        )
    )


#: the loop, its operands, and the indices of the float ones. Operands are drawn on demand; those of several megabytes
#: can be drawn with a fraction of their rows
LARGE: dict[str, tuple[Write, Callable[[int], tuple[object, ...]], list[int]]] = {
    "a large carry": (
        lambda g, x, k: g.scan(k, x, body=tanh, carries=1, length=5),
        lambda n: (random(1200 // n, 1200), 0.5),
        [0],
    ),
    "a large stack": (
        lambda g, x, k: g.scan(k, x, body=both, carries=1, length=40),
        lambda _: (random(420, 420), 0.5),
        [0, 1],
    ),
    "a large sequence": (
        lambda g, k, x: g.scan(k, x, body=lambda g, k, x: [g.sin(g.mul(k, x))], sequences=1),
        lambda _: (0.5, random(30, 420, 420)),
        [0],
    ),
    "products": (
        lambda g, x, w: g.scan(w, x, body=lambda g, w, x: [g.tanh(g.matmul(w, x))], carries=1, length=3),
        lambda n: (random(1000, 1000 // n), 0.01 * random(1000, 1000, seed=1)),
        [0],
    ),
    "carries that change places": (
        lambda g, x, y: g.scan(x, y, body=lambda g, x, y: [y, x], carries=2, length=3),
        lambda n: (random(1500 // n, 1500), random(1500 // n, 1500, seed=1)),
        [0, 1],
    ),
    "a while": (
        lambda g, x, k: g.while_(
            k,
            x,
            condition=lambda g, k, x: [g.less(g.sum(x), g.number(1e9))],
            body=tanh,
            carries=1,
            max_steps=20,
        ),
        lambda _: (random(600, 600), 0.5),
        [0],
    ),
    "a map": (
        lambda g, k, x: g.map(k, x, body=lambda g, k, x: [g.sin(g.mul(k, x))], sequences=1),
        lambda _: (0.5, random(40, 400, 400)),
        [0],
    ),
    "a fixed point": (
        lambda g, k, x: g.fixed_point(
            k, x, body=lambda g, k, x: [g.sin(g.mul(k, x))], carries=1, tolerance=0.0, max_steps=5
        ),
        lambda n: (0.5, random(1200 // n, 1200)),
        [0],
    ),
    "positions, which take more than they leave": (
        lambda g, x: g.scan(x, body=positions, carries=1, length=3),
        lambda n: (random(10**6 // n),),
        [0],
    ),
    "a step of Python's among entries": (
        lambda g, x: g.scan(x, body=lambda g, x: [g.sin(g.sort(g.cos(x), axis=0))], sequences=1),
        lambda n: (random(6000 // n, 1000),),
        [0],
    ),
    "a call that computes again": (
        lambda g, k, x: g.call(k, x, body=lambda g, k, x: [g.matmul(g.tanh(g.matmul(k, x)), x)], recompute=True),
        lambda n: (random(1200 // n, 1200), random(1200, 1200, seed=1)),
        [0],
    ),
}


def measured(plan: Plan, case: Written, executor: Executor = EXECUTOR) -> int:
    """Bytes that a warm run takes, feeds included."""
    feeds = {feed: case.feeds[feed] for feed in plan.feeds}
    executor.run(plan, feeds)
    executor.instances.clear()
    tracemalloc.start()
    try:
        results = executor.run(plan, feeds)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del results
    return peak + sum(x.nbytes for x in feeds.values())


@pytest.mark.slow
@pytest.mark.parametrize("differentiated", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("name", LARGE)
def test_measured_peak_matches_the_plan(name: str, differentiated: bool) -> None:
    write, arrays, floats = LARGE[name]
    case = written(write, *arrays(1), floats=floats)
    plan = plan_of(case, differentiated=differentiated)
    used = measured(plan, case)
    assert used <= plan.peak_bytes + MEGABYTES
    if PRINTER == "none":  # kernels run another plan, which may hold less between its nodes
        assert plan.peak_bytes <= max(50 * MEGABYTES, 1.1 * used)


@pytest.mark.slow
@pytest.mark.parametrize("differentiated", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("name", [name for name in LARGE if name not in ("a large carry", "a large sequence")])
def test_machine_code_stays_within_the_planned_peak(name: str, differentiated: bool) -> None:
    """So do Python steps among it. At a third of the rows, one array too many still exceeds a megabyte."""
    write, arrays, floats = LARGE[name]
    case = written(write, *arrays(3), floats=floats)
    plan = plan_of(case, differentiated=differentiated)
    compiling = open_executor("cpu", compile="on")
    for _ in range(2):
        compiling.run(plan, {feed: case.feeds[feed] for feed in plan.feeds})
    compiling.settle()
    assert measured(plan, case, compiling) <= plan.peak_bytes + MEGABYTES


def test_cond_is_planned_for_both_branches() -> None:
    """Both branches hold their results, in turn."""

    def write(g: Writer, k: int, p: int) -> list[int]:
        return g.scan(k, p, body=chosen, carries=1, sequences=1)

    case = written(write, random(*SQUARE), np.array([True, False, True]), floats=())
    plan = plan_of(case)
    used = measured(plan, case)
    assert used <= plan.peak_bytes + MEGABYTES
    assert plan.peak_bytes <= max(50 * MEGABYTES, 1.1 * used)


def test_loop_body_is_bound_once_across_rebinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffers of an outer step move every time, so the inner loop is bound again, but its body is not."""
    bound: list[Plan] = []
    bind = type(EXECUTOR).bind

    def counted(executor: Executor, plan: Plan, *binder: object) -> object:
        bound.append(plan)
        return bind(executor, plan, *binder)  # type: ignore[arg-type]

    def inner(g: Writer, k: int, x: int) -> list[int]:
        return list(g.scan(k, x, body=tanh, carries=1, length=2))

    case = written(lambda g, k, x: g.scan(k, x, body=inner, carries=1, length=6), 0.5, random(200, 200), floats=())
    plan = plan_of(case)
    monkeypatch.setattr(type(EXECUTOR), "bind", counted)
    EXECUTOR.instances.clear()
    for _ in range(3):
        EXECUTOR.run(plan, case.feeds)
    assert len(bound) == (1 if PRINTER == "llvm" else 3)  # machine code includes bodies in the calls of the plan
