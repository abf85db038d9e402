"""Long kernels stop at any deadline check, without naming a node, and the plan can run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine import Builder, Deadline, DeadlineExceeded, Graph, Limits, TensorType, Value, registry
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import fuse
from engine.compiler.plan import Plan, make_plan
from engine.ir.run_context import RunContext
from engine.ops.conv.convolution import kernel_gradient
from engine.ops.conv.windows import Windows
from engine.runtime.numpy_backend import KernelBinder, NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan

Array = np.ndarray[Any, Any]
Formula = Callable[..., Value]
EXECUTOR = NumPyExecutor()


class Counted(Deadline):
    """Counts its checks, and passes at check number `stops_at`."""

    __slots__ = ("looks", "stops_at")

    def __init__(self, stops_at: float = np.inf) -> None:
        super().__init__(60.0)
        self.looks, self.stops_at = 0, stops_at

    def check(self) -> None:
        self.looks += 1
        if self.looks >= self.stops_at:
            raise DeadlineExceeded("the request did not finish within its timeout of 60 s")


def triangles(*shape: int) -> Array:
    return np.tril(np.random.default_rng(1).uniform(0.5, 1, shape)) + 2 * np.eye(shape[-1])


def draw(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape)


def definite(*shape: int) -> Array:
    x = triangles(*shape)
    return x @ x.swapaxes(-1, -2)


def indices(count: int, *shape: int) -> Array:
    return np.random.default_rng(2).integers(0, count, shape)


def kernel_gradient_formula(size: int) -> Formula:
    windows = Windows((size, size), (1, 1), (0, 0), (1, 1))
    return lambda wide, narrow: kernel_gradient(wide, narrow, windows, 1)


FUSED = "a loop"
#: for each kernel that works in chunks: more work than one chunk
LONG: dict[str, tuple[Formula, Sequence[Array]]] = {
    "softmax": (lambda x: x.softmax(axis=1), [draw(90_000, 8)]),
    "log_softmax": (lambda x: x.log_softmax(axis=1), [draw(90_000, 8)]),
    "conv2d": (lambda x, k: x.conv2d(k), [draw(8, 16, 40, 40), draw(16, 16, 3, 3)]),
    "conv2d, large kernels": (lambda x, k: x.conv2d(k), [draw(64, 8, 24, 24), draw(8, 8, 22, 22)]),
    "conv_transpose2d": (lambda x, k: x.conv_transpose2d(k), [draw(8, 16, 40, 40), draw(16, 16, 3, 3)]),
    "conv_transpose2d, sparse": (
        lambda x, k: x.conv_transpose2d(k, stride=(9, 9)),
        [draw(8, 16, 40, 40), draw(16, 16, 3, 3)],
    ),
    "kernel_gradient": (kernel_gradient_formula(3), [draw(8, 16, 40, 40), draw(8, 16, 38, 38)]),
    "kernel_gradient, few windows": (kernel_gradient_formula(22), [draw(64, 8, 24, 24), draw(64, 8, 3, 3)]),
    "gather": (lambda x, i: x.gather(i, axis=1), [draw(300, 700), indices(700, 300, 900)]),
    "scatter_add of rows": (
        lambda x, i, u: x.scatter_add(i, u, axis=1),
        [draw(300, 700), indices(700, 300, 900), draw(300, 900)],
    ),
    "segment_sum": (lambda x, i: x.segment_sum(i, segments=50), [draw(300_000, 2), indices(50, 300_000)]),
    "solve": (lambda a, b: a.solve(b), [definite(3, 70, 70), draw(3, 70, 2)]),
    "cholesky": (lambda x: x.cholesky(), [definite(3, 70, 70)]),
    "triangular_solve": (lambda a, b: a.triangular_solve(b), [triangles(3, 70, 70), draw(3, 70, 2)]),
    "triangular_solve of many": (lambda a, b: a.triangular_solve(b), [triangles(900, 4, 4), draw(900, 4, 2)]),
    "attention": (lambda q, k, v: q.attention(k, v), [draw(2, 1500, 8), draw(2, 1500, 8), draw(2, 1500, 8)]),
    "max_pool2d": (lambda x: x.max_pool2d(kernel_size=(3, 3)), [draw(2, 90, 90)]),
    "avg_pool2d": (lambda x: x.avg_pool2d(kernel_size=(3, 3)), [draw(2, 90, 90)]),
    "max_pool2d_indices": (lambda x: x.max_pool2d_indices(kernel_size=(3, 3)), [draw(2, 90, 90)]),
    "topk": (lambda x: x.topk(k=9, axis=1).output(0), [draw(40, 30)]),
    "topk of the least there is": (lambda x: x.topk(k=1, axis=1).output(1), [np.full((40, 30), -np.inf)]),
    "cumsum along rows": (lambda x: x.cumsum(axis=1), [draw(2000, 200)]),
    "cumsum across rows": (lambda x: x.cumsum(axis=0), [draw(30, 512)]),
    "lgamma": (lambda x: x.lgamma(), [draw(60_000)]),
    "polygamma": (lambda x: x.polygamma(order=2), [draw(60_000)]),
    "betaln": (lambda a, b: a.betaln(b), [np.abs(draw(60_000)), np.abs(draw(60_000))]),
    "transpose": (lambda x: x.transpose(), [draw(300, 300)]),
    "tril": (lambda x: x.tril(), [draw(700, 100)]),
    FUSED: (lambda x: x.sin() * x.cos() + x.square(), [draw(40, 5000)]),
}


def graph_of(formula: Formula, feeds: Sequence[Array]) -> Graph:
    builder = Builder(registry())
    return builder.graph([formula(*[builder.leaf(TensorType.of(a), i) for i, a in enumerate(feeds)])])


def planned(case: str) -> tuple[Plan, dict[Any, Array]]:
    formula, feeds = LONG[case]
    graph = graph_of(formula, feeds)
    return make_plan(fuse(graph, 1) if case == FUSED else graph, Limits()), dict(enumerate(feeds))


def checks_between_steps(plan: Plan) -> int:
    """Return the number of checks if kernels made none."""
    return len(plan.steps) + 2


@pytest.mark.parametrize("case", LONG)
def test_kernel_checks_the_deadline(case: str) -> None:
    plan, feeds = planned(case)
    for run in (EXECUTOR.interpret, lambda plan, *more: PreparedPlan(plan, EXECUTOR, KernelBinder({}, 1)).run(*more)):
        deadline = Counted()
        run(plan, feeds, deadline)
        assert deadline.looks > checks_between_steps(plan)


@pytest.mark.parametrize("case", LONG)
def test_stopped_plan_can_run_again(case: str) -> None:
    plan, feeds = planned(case)
    prepared = PreparedPlan(plan, EXECUTOR, KernelBinder({}, 1))
    counted = Counted()
    expected = prepared.run(feeds, counted)[0].tobytes()
    for stops_at in sorted({1, 2, 3, counted.looks // 2, counted.looks - 1, counted.looks}):
        with pytest.raises(DeadlineExceeded) as raised:
            prepared.run(feeds, stopped := Counted(stops_at))
        assert raised.value.node is None
        assert stopped.looks == stops_at
        (actual,) = prepared.run(feeds)
        assert actual.tobytes() == expected
        del actual


@pytest.mark.parametrize("case", LONG)
def test_interpreter_stops_as_well(case: str) -> None:
    plan, feeds = planned(case)
    EXECUTOR.interpret(plan, feeds, counted := Counted())
    for stops_at in (2, counted.looks // 2, counted.looks):
        with pytest.raises(DeadlineExceeded) as raised:
            EXECUTOR.interpret(plan, feeds, stopped := Counted(stops_at))
        assert raised.value.node is None
        assert stopped.looks == stops_at


def test_deadline_is_checked_for_every_tap_of_pool_indices() -> None:
    plan, feeds = planned("max_pool2d_indices")
    EXECUTOR.interpret(plan, feeds, counted := Counted())
    along_rows_and_columns = 2 * (3 - 2)
    assert counted.looks >= 3 * 3 + along_rows_and_columns


def test_array_functions_check_the_deadline_per_instruction() -> None:
    plan, feeds = planned(FUSED)
    step = next(step for step in plan.steps if isinstance(step.op, Fused))
    out = [np.empty(t.shape, t.dtype) for t in step.types]
    counted = Counted()
    step.op.fill(RunContext(np, counted, device="new"), [feeds[n] for n in step.operands], out, step.attrs)
    computed = [each.op for each in step.op.kernel.instructions if each.op not in ("load", "constant")]
    assert counted.looks >= len(computed) > 3


def test_idle_plan_does_not_hold_a_deadline() -> None:
    """Its stop byte may be in shared memory, which must be released."""
    plan, feeds = planned(FUSED)
    prepared = PreparedPlan(plan, EXECUTOR)
    prepared.run(feeds, Counted())
    assert prepared._run.deadline.time == np.inf


def test_checked_iteration_stops_at_the_deadline() -> None:
    chunks = RunContext(np, Counted(3)).checked("abcd")
    assert [next(chunks), next(chunks)] == ["a", "b"]
    with pytest.raises(DeadlineExceeded):
        next(chunks)
