"""Plans with microkernels: correct, independent of threads, stored, and within the planned memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Builder, Graph, Limits, Plan, TensorType, registry
from engine.codegen.native.machine_code import KernelStore, KernelUnavailable
from engine.codegen.native.native_call import NativeCall
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import MicrokernelOp, select_microkernels
from engine.compiler.plan import Step, make_plan
from engine.ir.errors import IndexOutOfRange
from engine.ir.op import KernelCall
from engine.ir.run_context import RunContext
from engine.runtime import numpy_backend as kernels
from engine.runtime.binding import Binder
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan
from tests.engine.runtime.kernel_plans import counted

pytest.importorskip("llvmlite")
Array = np.ndarray[Any, Any]
PLENTY = 1 << 40
LIMITS = Limits()


def attention_like(dtype: str = "float32") -> tuple[Graph, dict[int, Array]]:
    """Products of views: transposed, flipped, sliced, broadcast, along batch axes; two are worth a second thread."""
    builder, random = Builder(registry()), np.random.default_rng(0)
    feeds = {i: random.normal(size=s).astype(dtype) for i, s in enumerate([(3, 130, 64), (64, 130), (64, 70)])}
    x, w, v = (builder.leaf(TensorType.of(feeds[i]), i) for i in range(3))
    scores = x @ x.transpose()
    y = scores @ x
    z = x.flip(axes=(1,)) @ v
    part = y.slice(starts=(0, 1, 2), stops=(3, 51, 33)) @ v.slice(starts=(5, 0), stops=(36, 70))
    return builder.graph([scores, y @ w, z.transpose() @ y, part, z.sum()]), feeds


def compiled(graph: Graph, threads: int = 1) -> Plan:
    within = compiled_within(graph, PLENTY, threads)
    assert within is not None
    return within.plan


def run(plan: Plan, feeds: Mapping[Any, Array], binder: Binder, times: int = 1) -> list[Array]:
    bound = PreparedPlan(plan, NumPyExecutor(), binder)
    results: list[Array] = []
    for _ in range(times):
        results = bound.run(feeds)
    return results


def binder_for(plan: Plan, threads: int = 1, store: KernelStore | None = None) -> Binder:
    binder = Kernels(store, threads).compile(plan)
    assert binder is not None
    return binder


def assert_close(actual: list[Array], expected: list[Array]) -> None:
    for one, other in zip(actual, expected, strict=True):
        scale = float(abs(other).max())
        np.testing.assert_allclose(one, other, rtol=0, atol=300 * scale * np.finfo(one.dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_views_match_numpy(dtype: str) -> None:
    graph, feeds = attention_like(dtype)
    plan = compiled(graph)
    assert sum(isinstance(step.op, MicrokernelOp) for step in plan.steps) == 6
    actual = run(plan, feeds, binder_for(plan), times=2)
    wide, others = attention_like("float64")
    assert_close(
        actual, NumPyExecutor().interpret(make_plan(wide, LIMITS), {i: feeds[i].astype(float) for i in others})
    )


def test_views_are_not_copied_for_microkernels() -> None:
    graph, _ = attention_like()
    places = [step.op.name for step in compiled(graph).steps if step.places]
    assert not {"transpose", "flip", "slice"}.intersection(places)


@pytest.mark.slow
def test_results_do_not_depend_on_threads() -> None:
    graph, feeds = attention_like()
    distinct = {
        tuple(a.tobytes() for a in run(p, feeds, binder_for(p, n))) for n in (1, 2, 3) for p in [compiled(graph, n)]
    }
    assert len(distinct) == 1


@pytest.mark.slow
def test_single_thread_plan_runs_on_one_thread() -> None:
    """However many the server has, so that workspaces take no more memory than was planned."""
    graph, feeds = attention_like()
    plan = compiled(graph, 1)
    binder = binder_for(plan, 3)
    assert max(map(binder.workspace, plan.steps)) == max(
        step.op.recipe.workspace(1) for step in plan.steps if isinstance(step.op, MicrokernelOp)
    )
    assert [a.tobytes() for a in run(plan, feeds, binder)] == [a.tobytes() for a in run(plan, feeds, binder_for(plan))]


class Guarded(Binder):
    """A binder that wraps another and checks guard bytes behind the workspace of each step."""

    def __init__(self, inner: Binder) -> None:
        self.inner = inner
        self.bound: list[Sequence[KernelCall]] = []
        self.checked = 0

    def workspace(self, step: Step) -> int:
        return self.inner.workspace(step) + 256

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        size, workspace = self.inner.workspace(step), run.workspace
        calls = self.inner.calls(RunContext(run.xp, run.deadline, workspace[:size]), step, operands, out)
        if isinstance(step.op, MicrokernelOp):
            assert size == step.op.workspace(step.types[0])
            self.bound.append(calls)
        return [(workspace[size:].fill, (0xA5,)), *calls, (self._check, (workspace[size:],))]

    def _check(self, behind: Array) -> None:
        assert (behind == 0xA5).all()
        self.checked += 1


@pytest.mark.parametrize("threads", [1, 3])
def test_products_stay_within_their_workspace(threads: int) -> None:
    graph, feeds = attention_like()
    plan = make_plan(select_microkernels(graph, PLENTY, threads), LIMITS)
    guarded = Guarded(binder_for(plan, threads))
    assert_close(run(plan, feeds, guarded), NumPyExecutor().interpret(make_plan(graph, LIMITS), feeds))
    assert guarded.checked >= 6


def test_batched_product_is_one_call() -> None:
    """The matrices of a batch are items of the kernel: none is a call of its own."""
    graph, feeds = attention_like()
    plan = make_plan(select_microkernels(graph, PLENTY, 1), LIMITS)
    guarded = Guarded(binder_for(plan))
    run(plan, feeds, guarded)
    assert len(guarded.bound) >= 6
    for calls in guarded.bound:
        ((call, _),) = calls
        assert isinstance(call, NativeCall)


def test_kernels_are_stored_and_reloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    graph, feeds = attention_like()
    plan, texts = compiled(graph), counted(monkeypatch)
    first = run(plan, feeds, binder_for(plan, store=KernelStore(tmp_path)))
    count = len(texts)
    assert count == len(list(tmp_path.iterdir())) >= 5
    second = run(plan, feeds, binder_for(plan, store=KernelStore(tmp_path)))
    assert len(texts) == count
    assert [a.tobytes() for a in second] == [a.tobytes() for a in first]


def test_fast_results_change_once_and_bitwise_ones_never() -> None:
    graph, feeds = attention_like()
    plan = make_plan(graph, LIMITS)
    fast = NumPyExecutor(determinism="fast", compile="on")
    fast.run(plan, feeds)
    fast.run(plan, feeds)
    fast.settle()
    assert fast.kernels >= 5
    after = [fast.run(plan, feeds) for _ in range(2)]
    assert [a.tobytes() for a in after[0]] == [a.tobytes() for a in after[1]]
    assert_close(after[0], fast.interpret(plan, feeds))
    bitwise = NumPyExecutor(determinism="bitwise", compile="on")
    bits = [[a.tobytes() for a in bitwise.run(plan, feeds)] for _ in range(3)]
    bitwise.settle()
    assert bits[0] == bits[1] == bits[2] == [a.tobytes() for a in bitwise.run(plan, feeds)]


@pytest.mark.slow
def test_bitwise_uses_microkernels_from_the_first_run() -> None:
    graph, feeds = attention_like()
    plan = make_plan(select_microkernels(graph, PLENTY, 1), LIMITS)
    executor = NumPyExecutor(determinism="bitwise", compile="on")
    bits = [[a.tobytes() for a in executor.run(plan, feeds)] for _ in range(2)]
    assert executor.kernels >= 5
    assert bits[0] == bits[1] == [a.tobytes() for a in run(plan, feeds, binder_for(plan))]


def test_numpy_is_the_fallback_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> bytes:
        raise KernelUnavailable("no")

    graph, feeds = attention_like()
    monkeypatch.setattr(kernels, "machine_code", refuse)
    expected = NumPyExecutor().interpret(make_plan(graph, LIMITS), feeds)
    plan = make_plan(select_microkernels(graph, PLENTY, 1), LIMITS)
    actual = NumPyExecutor(determinism="bitwise", compile="on").run(plan, feeds)
    assert [a.tobytes() for a in actual] == [a.tobytes() for a in expected]


@pytest.mark.slow
def test_fallback_uses_the_feeds_of_the_current_run() -> None:
    """Large feeds move between runs: an error or an infinity belongs to the run that has it."""
    builder, random = Builder(registry()), np.random.default_rng(0)
    x, index = random.normal(size=(300, 400)), random.integers(0, 400, (300, 400))
    image, kernel = random.normal(size=(8, 16, 20, 20)), random.normal(size=(16, 16, 3, 3))
    feeds: dict[int, Array] = {0: x, 1: index, 2: image, 3: kernel}
    leaves = [builder.leaf(TensorType.of(feeds[i]), i) for i in range(4)]
    spread = leaves[2].conv_transpose2d(leaves[3], stride=(2, 2), padding=(1, 1))
    plan = compiled(builder.graph([leaves[0].gather(leaves[1], axis=1), spread]))
    assert sum(step.op.recipe.checked for step in plan.steps if isinstance(step.op, MicrokernelOp)) == 2
    bound = PreparedPlan(plan, NumPyExecutor(), binder_for(plan))
    for value in (1.0, np.inf, 2.0):
        changed = {**feeds, 0: value + x, 3: kernel.copy()}
        changed[3][3, 4, 1, 2] = value
        assert_same(bound.run(changed), NumPyExecutor().interpret(plan, changed))
    wrong = index.copy()
    wrong[17, 300] = 400
    with pytest.raises(IndexOutOfRange, match="outside the axis"):
        bound.run({**feeds, 1: wrong})
    assert_same(bound.run(feeds), NumPyExecutor().interpret(plan, feeds))


def assert_same(actual: list[Array], expected: list[Array]) -> None:
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
