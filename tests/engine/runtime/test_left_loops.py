"""Loops that leave the native runner for Python steps end normally or with the same error, and can run again."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from engine import (
    Call,
    Compiler,
    Deadline,
    DeadlineExceeded,
    EngineError,
    Gradients,
    Hessian,
    Limits,
    Values,
    open_executor,
)
from engine.codegen.native.native_call import IS_SUPPORTED
from engine.compiler.control_flow import RunsPlans
from engine.ir.errors import IndexOutOfRange
from tests.engine.looping import EXECUTOR, Ticking, Write, Writer, Written, random, same, written
from tests.engine.runtime.leaving import Bound, compiled

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_SUPPORTED, reason="no runner for this machine")]

WIDE = Limits(flops=1 << 90)


def sorting(g: Writer, k: int, x: int) -> list[int]:
    """Machine code before and after a Python step."""
    y = g.sort(g.mul(k, g.sin(x)), axis=0)
    return [g.add(g.cos(y), x)]


def scanned(g: Writer, k: int, x: int) -> list[int]:
    return list(g.scan(k, x, body=sorting, carries=1, length=7))


def less(g: Writer, _: int, x: int) -> list[int]:
    return [g.less(g.sum(g.sort(x, axis=0)), g.number(9.0))]


def whiled(g: Writer, k: int, x: int) -> list[int]:
    return list(g.while_(k, x, condition=less, body=sorting, carries=1, max_steps=50))


def nested(g: Writer, k: int, x: int) -> list[int]:
    """The inner loop reads a const of the outer one, and carries that change."""

    def outer(g: Writer, k: int, x: int) -> list[int]:
        (y,) = g.scan(g.sort(x, axis=0), g.mul(k, x), body=sorting, carries=1, length=3, reverse=True)
        (z,) = whiled(g, k, y)[:1]
        return [g.sin(z), z]

    return list(g.scan(k, x, body=outer, carries=1, length=4))


def choosing(g: Writer, k: int, x: int) -> list[int]:
    def body(g: Writer, k: int, x: int) -> list[int]:
        then, otherwise = sorting, lambda g, k, x: g.call(k, x, body=sorting, recompute=True)
        return list(g.cond(g.less(g.sum(x), g.sum(k)), k, x, then=then, otherwise=otherwise))

    return list(g.scan(k, x, body=body, carries=1, length=9))


WRITTEN: dict[str, Write] = {"scan": scanned, "while": whiled, "nested": nested, "choice": choosing}


def program_of(write: Write, **options: Any) -> Written:
    return written(write, random(5), random(5, seed=1), limits=WIDE, **options)


@pytest.mark.parametrize("call", ["values", "gradients", "hessian"])
@pytest.mark.parametrize("name", WRITTEN)
def test_bits_match_the_same_kernels_step_by_step(name: str, call: str) -> None:
    asked = program_of(WRITTEN[name], floats=[0])
    calls: dict[str, Call | None] = {
        "values": None,
        "gradients": Gradients.of_program(asked.program),
        "hessian": Hessian.of_program(asked.program),
    }
    plan = compiled(asked, calls[call])
    left, stepped = Bound(plan), Bound(plan, step_by_step=True)
    expected = stepped.run(asked)
    for _ in range(3):
        same(left.run(asked), expected, 0)
    assert left.made
    assert not stepped.made
    same(expected, EXECUTOR.interpret(plan, {feed: asked.feeds[feed] for feed in plan.feeds}), 1e-12)


# ---------------------------------------------------------------- calls


def test_python_runs_its_own_steps_only() -> None:
    scan, loop = Bound(compiled(program_of(scanned))), Bound(compiled(program_of(whiled)))
    scan.run(program_of(scanned))
    assert (scan.paused, scan.made) == (1, 7)
    steps = int(loop.run(program_of(whiled))[1])
    assert 0 < steps < 50
    assert (loop.paused, loop.made) == (3, 1 + 2 * steps)


def test_bodies_of_native_loops_are_not_bound_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = list[object]()
    bind = type(EXECUTOR).bind
    monkeypatch.setattr(type(EXECUTOR), "bind", lambda *given: bound.append(given) or bind(*given))  # type: ignore[func-returns-value]
    for write in WRITTEN.values():
        bound.clear()
        asked = program_of(write)
        Bound(compiled(asked)).run(asked)
        assert len(bound) == 1


def test_consecutive_python_steps_are_one_pause() -> None:
    def body(g: Writer, k: int, x: int) -> list[int]:
        y = g.sort(g.sort(g.mul(k, x), axis=0), axis=0)
        return [g.sin(g.sort(g.sort(g.neg(y), axis=0), axis=0))]

    asked = program_of(lambda g, k, x: g.scan(k, x, body=body, carries=1, length=6))
    plan = compiled(asked)
    names = [step.op.name for step in next(s.op for s in plan.steps if isinstance(s.op, RunsPlans)).plans[0].steps]
    left = Bound(plan)
    same(left.run(asked), Bound(plan, step_by_step=True).run(asked), 0)
    deadline = Ticking(10**6)
    left.run(asked, deadline)
    assert names.count("sort") == left.paused == 4
    assert 10**6 - deadline.left < 6 * 4


@pytest.mark.parametrize("predicate", [False, True])
def test_only_the_chosen_branch_is_bound(predicate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(g: Writer, p: int, x: int) -> list[int]:
        return g.cond(p, x, then=lambda g, x: [g.sort(x, axis=0)], otherwise=lambda g, x: [g.cumsum(x, axis=0)])

    asked = written(write, np.bool_(predicate), random(5), floats=())
    plan = compiled(asked)
    (op,) = (step.op for step in plan.steps if isinstance(step.op, RunsPlans))
    bound = list[Any]()
    bind = type(EXECUTOR).bind
    monkeypatch.setattr(type(EXECUTOR), "bind", lambda self, plan, *rest: bound.append(plan) or bind(self, plan, *rest))  # type: ignore[func-returns-value]
    stepped = Bound(plan, step_by_step=True)
    for _ in range(2):
        stepped.run(asked)
    assert bound == [plan, op.plans[1 - predicate]]


def test_python_steps_read_reversed_views() -> None:
    """Consts, carries and entries with negative strides."""

    def body(g: Writer, k: int, x: int, u: int) -> list[int]:
        flipped = [g.log_ndtr(g.flip(y, axes=[0])) for y in (k, x, u)]
        return [g.sin(g.add(g.add(*flipped[:2]), flipped[2]))]

    asked = written(
        lambda g, *given: g.scan(*given, body=body, carries=1, sequences=1),
        *(random(5, seed=i) for i in (0, 1)),
        random(4, 5),
    )
    left, plan = Bound(compiled(asked)), Compiler(WIDE).forward(asked.program, asked.types, asked.results).plan
    same(left.run(asked), EXECUTOR.run(plan, asked.feeds), 1e-13)
    assert left.made


# ---------------------------------------------------------------- errors


def read(g: Writer, m: int, i: int) -> list[int]:
    index = g.reshape(i, shape=[1])
    return [m, g.add(i, g.number(1, "int64")), g.sum(g.sin(g.gather(g.cumsum(m, axis=0), index, axis=0)))]


def added_to(g: Writer, m: int, i: int) -> list[int]:
    index = g.reshape(i, shape=[1])
    return [m, g.add(i, g.number(1, "int64")), g.sum(g.sin(g.scatter_add(g.cos(m), index, g.number([2.0]), axis=0)))]


def summed(g: Writer, m: int, i: int) -> list[int]:
    """The same by a Python step; the others are kernels."""
    index = g.broadcast_to(g.reshape(i, shape=[1]), shape=[9])
    sums = g.segment_sum(g.cos(m), index, segments=9)
    return [m, g.add(i, g.number(1, "int64")), g.sum(g.sin(sums))]


def loops_around(body: Write) -> dict[str, Write]:
    def condition(g: Writer, m: int, i: int, _: int) -> list[int]:
        return [g.less(body(g, m, i)[2], g.number(1e9))]

    def scan(g: Writer, m: int, i: int) -> list[int]:
        return list(g.scan(m, i, body=body, carries=2, length=6))

    return {
        "a scan": scan,
        "a scan in a scan": lambda g, m, i: g.scan(m, i, body=scan, carries=2, length=1),
        "a while": lambda g, m, i: g.while_(
            m, i, g.number(0.0), condition=condition, body=lambda g, m, i, y: body(g, m, i), carries=3, max_steps=6
        ),
        "a choice": lambda g, m, i: g.scan(
            m,
            i,
            body=lambda g, m, i: g.cond(g.less(i, g.number(99, "int64")), m, i, then=body, otherwise=body),
            carries=2,
            length=6,
        ),
    }


def error_of(run: Callable[[], object]) -> tuple[object, ...]:
    with pytest.raises(EngineError) as caught:
        run()
    error = caught.value
    return type(error), str(error), error.node, error.function, error.function_node


@pytest.mark.parametrize("body", [read, added_to, summed])
@pytest.mark.parametrize("place", loops_around(read))
def test_error_names_its_node_and_the_loop_runs_again(place: str, body: Write) -> None:
    asked = written(loops_around(body)[place], random(9), np.int64(0), floats=())
    plan = compiled(asked)
    left = Bound(plan)
    expected = left.run(asked)
    made, wrong = left.made, asked._replace(feeds={**asked.feeds, 1: np.array(6)})
    actual = error_of(lambda: left.run(wrong))
    assert 0 < left.made - made < made or body is not summed
    assert actual == error_of(lambda: EXECUTOR.interpret(plan, {feed: wrong.feeds[feed] for feed in plan.feeds}))
    assert actual[0] is IndexOutOfRange
    assert None not in actual
    for _ in range(2):
        same(left.run(asked), expected, 0)
        assert error_of(lambda: left.run(wrong)) == actual


# ---------------------------------------------------------------- deadlines


def endless(g: Writer, limit: int, x: int) -> list[int]:
    """Python steps and machine code, until a sum exceeds the limit."""
    return g.while_(
        limit,
        x,
        condition=lambda g, limit, x: [g.less(g.sum(x), limit)],
        body=lambda g, limit, x: [g.sort(g.add_scalar(x, scalar=1.0), axis=0)],
        carries=1,
        max_steps=10**15,
    )[:1]


def endless_in_a_scan(g: Writer, limit: int, x: int) -> list[int]:
    return list(g.scan(limit, x, body=lambda g, limit, x: endless(g, limit, g.cumsum(x, axis=0)), carries=1, length=2))


@pytest.mark.parametrize("write", [endless, endless_in_a_scan])
def test_deadline_ends_a_loop_that_can_run_again(write: Write) -> None:
    asked = written(write, 30.0, np.zeros(2), floats=(), limits=WIDE)
    left = Bound(compiled(asked))
    expected = left.run(asked)
    wrong = asked._replace(feeds={**asked.feeds, 0: np.array(1e15)})
    for looks in (1, 7, 100):
        before = left.made
        with pytest.raises(DeadlineExceeded) as caught:
            left.run(wrong, Ticking(looks))
        assert caught.value.node is None
        assert left.made - before <= looks
        same(left.run(asked), expected, 0)
    with pytest.raises(DeadlineExceeded, match="within its"):
        left.run(wrong, Deadline(0.01))
    same(left.run(asked), expected, 0)


@pytest.mark.parametrize("depth", [1, 2])
def test_stop_byte_ends_machine_code_after_a_python_step(depth: int) -> None:
    """An inner loop of machine code, after a Python step that sets the byte."""
    stop = bytearray(1)

    def counting_loop(g: Writer, limit: int, x: int) -> list[int]:
        return g.while_(
            limit,
            g.sum(g.sort(x, axis=0)),
            condition=lambda g, limit, x: [g.less(x, limit)],
            body=lambda g, limit, x: [g.add_scalar(x, scalar=1.0)],
            carries=1,
            max_steps=10**15,
        )[:1]

    def outer(g: Writer, limit: int, x: int) -> list[int]:
        return [g.broadcast_to(counting_loop(g, limit, x)[0], shape=[3])]

    write: Write = lambda g, limit, x: g.scan(limit, x, body=outer, carries=1, length=2)
    nest: Write = lambda g, limit, x: g.scan(limit, x, body=write, carries=1, length=2)
    asked = written(write if depth == 1 else nest, 30.0, np.zeros(3), floats=(), limits=WIDE)
    left = Bound(compiled(asked))
    expected = left.run(asked)
    wrong = asked._replace(feeds={**asked.feeds, 0: np.array(1e15)})

    class Stopping(Deadline):
        """Sets its byte after enough checks to be inside the inner loop."""

        __slots__ = ("left",)

        def check(self) -> None:
            self.left -= 1
            stop[0] = self.left <= 0 and not super().check()

    deadline = Stopping(stop=stop)
    deadline.left = 2
    with pytest.raises(DeadlineExceeded, match="no longer waits"):
        left.run(wrong, deadline)
    stop[0] = 0
    same(left.run(asked), expected, 0)


# ---------------------------------------------------------------- memory


def solved(g: Writer, a: int, b: int) -> list[int]:
    return [g.sin(g.solve(a, b))]


def test_large_const_is_not_copied_and_may_move_between_runs() -> None:
    """The const is not part of the loop's workspace."""
    matrix = random(200, 200) + 20 * np.eye(200)
    asked = written(lambda g, a, b: g.scan(a, b, body=solved, carries=1, length=4), matrix, random(200), floats=())
    plan = compiled(asked)
    left, stepped = Bound(plan), Bound(plan, step_by_step=True)
    (step,) = (step for step in plan.steps if isinstance(step.op, RunsPlans))
    assert 0 < left.binder.workspace(step) < matrix.nbytes / 4
    for seed in range(3):
        moved = asked._replace(feeds={**asked.feeds, 0: matrix + random(200, 200, seed=seed)})
        same(left.run(moved), stepped.run(moved), 0)
    assert left.made == 3 * 4


def test_view_of_a_const_follows_its_memory() -> None:
    def body(g: Writer, a: int, b: int) -> list[int]:
        return [g.sin(g.solve(g.transpose(g.slice(a, starts=[100, 0], stops=[300, 200])), b))]

    matrices = random(300, 200) + 20 * np.eye(300, 200, -100)
    asked = written(lambda g, a, b: g.call(a, b, body=body, recompute=True), matrices, random(200), floats=())
    plan = compiled(asked)
    left = Bound(plan)
    for _ in range(2):
        asked = asked._replace(feeds={**asked.feeds, 0: asked.feeds[0] + 1})
        same(left.run(asked), Bound(plan, step_by_step=True).run(asked), 0)
    assert left.made == 2


def test_loop_beyond_the_planned_workspace_runs_step_by_step() -> None:
    asked = written(
        lambda g, x: g.scan(x, body=lambda g, x: [g.sort(g.sin(x), axis=0)], carries=1, length=3), random(10**6)
    )
    plan = compiled(asked)
    left = Bound(plan)
    same(left.run(asked), Bound(plan, step_by_step=True).run(asked), 0)
    assert (left.paused, left.made) == (0, 0)


def test_memory_does_not_grow_and_is_freed_with_the_plan() -> None:
    matrix = random(100, 100) + 20 * np.eye(100)
    asked = written(
        lambda g, a, b: g.scan(a, b, body=lambda g, a, b: nested(g, g.sum(a), solved(g, a, b)[0]), carries=1, length=2),
        *(matrix, random(100)),
        floats=(),
        limits=WIDE,
    )
    plan = compiled(asked)
    left = Bound(plan)
    for _ in range(2):
        left.run(asked)
    gc.disable()
    tracemalloc.start()
    try:
        left.run(asked)
        before = tracemalloc.get_traced_memory()[0]
        for seed in range(20):
            left.run(asked._replace(feeds={**asked.feeds, 0: matrix + random(100, 100, seed=seed)}))
        assert tracemalloc.get_traced_memory()[0] < before + 10_000
        reference = weakref.ref(left.prepared)
        left.prepared = None  # type: ignore[assignment]
        assert reference() is None
    finally:
        tracemalloc.stop()
        gc.enable()


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize("threads", [1, 2])
def test_concurrent_runs_have_separate_loops(threads: int) -> None:
    executor = open_executor("cpu", threads, compile="on")
    asked = program_of(nested, floats=())
    values = Values.of_program(asked.program, asked.results)
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, values).plan
    for _ in range(3):
        executor.run(plan, asked.feeds)
        executor.settle()
    inputs = [{0: random(5, seed=k), 1: random(5, seed=k + 50)} for k in range(8)]
    expected = [executor.run(plan, feeds) for feeds in inputs]

    def work(k: int) -> None:
        for run in range(10):
            same(executor.run(plan, inputs[(k + run) % 8]), expected[(k + run) % 8], 0)

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(8))] == [None] * 8
    executor.close()
