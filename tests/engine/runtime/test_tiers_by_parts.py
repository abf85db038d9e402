"""Plans of many kernels: compiled in the order of time spent without them, and used in two stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Builder, Deadline, Limits, Plan, TensorType, registry
from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import lanes_of
from engine.codegen.native.machine_code import KernelStore, KernelUnavailable
from engine.compiler.fit_memory import Compilable, compiled_within
from engine.compiler.fused_kernel import FEW, Fused, compile_order, first_parts
from engine.compiler.plan import graph_of, make_plan
from engine.runtime import numpy_backend as kernels
from engine.runtime import tiers
from engine.runtime.numpy_backend import NumPyExecutor
from engine.runtime.tiers import ExecutionTiers
from tests.engine.runtime.kernel_plans import FEED as LAYERS_FEED
from tests.engine.runtime.kernel_plans import counted, layers
from tests.engine.runtime.stepped import SteppedCompiler

pytest.importorskip("llvmlite")
FUNCTIONS = ("tanh", "sin", "cos", "exp", "sqrt", "log1p", "expm1", "erf", "square", "sigmoid", "softplus", "atan")
X = np.linspace(0.1, 1, 300).astype("float32")
FEED = {0: X}
TIMEOUT = 60.0


def many_kernels(*, shown: bool = False) -> Plan:
    """Return a plan with a kernel per function and a cumulative sum after each; results: the last sum, or all."""
    sums = [Builder(registry()).leaf(TensorType(X.shape, X.dtype), 0)]
    for name in FUNCTIONS:
        sums.append((getattr(sums[-1], name)() * 0.01).cumsum(axis=0))
    return make_plan(sums[0].builder.graph(sums[1:] if shown else sums[-1:]), Limits())


def step_seconds(plan: Plan) -> list[float]:
    """Return the steps' times: each function takes longer than the one before, and the last by far the longest."""
    times = {name: 1e-6 * (k + 2) for k, name in enumerate(FUNCTIONS)} | {FUNCTIONS[-1]: 90e-6}
    return [times.get(step.op.name, 1e-6) for step in plan.steps]


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> SteppedCompiler:
    """Queue compile jobs for manual stepping, and let first runs take the times of `step_seconds`."""
    queue, record_run = SteppedCompiler(), ExecutionTiers.record_run
    monkeypatch.setattr(tiers, "BackgroundCompiler", lambda: queue)
    monkeypatch.setattr(
        ExecutionTiers, "record_run", lambda self, plan, taken=(): record_run(self, plan, taken and step_seconds(plan))
    )
    return queue


def run(backend: NumPyExecutor, plan: Plan) -> str:
    """Run once, check the result, and return the tier."""
    deadline = Deadline(TIMEOUT)
    result = backend.run(plan, FEED, deadline)
    np.testing.assert_allclose(result[0], NumPyExecutor().interpret(plan, FEED)[0], 1e-4, 1e-6)
    return deadline.tier


def new_executor(determinism: Any = "fast", **more: Any) -> NumPyExecutor:
    return NumPyExecutor(determinism=determinism, compile="on", **more)


def run_twice(backend: NumPyExecutor, plan: Plan) -> None:
    """Run twice, so that the plan is submitted for compilation."""
    assert [run(backend, plan) for _ in range(2)] == ["uncompiled"] * 2


def compilable_plan(plan: Plan) -> Plan:
    """Return the plan with everything fused that can be compiled."""
    compilable = compiled_within(graph_of(plan, registry()), plan.peak_bytes, 1)
    assert compilable is not None
    return compilable.plan


def kernel_texts(plan: Plan) -> list[list[str]]:
    """Return the texts of a plan's kernels, in the order of time spent: first part, and the rest."""
    order = compile_order(compilable_plan(plan), plan, step_seconds(plan))
    first = first_parts(order)[0]
    parts: list[list[str]] = [[], []]
    for shared in order:
        (op,) = shared.ops
        assert isinstance(op, Fused)
        parts[op not in first].append(llvm_text(op.expanded, lanes_of(op.expanded, op.iteration_space.columns)))
    return parts


@pytest.mark.slow
def test_tiers_of_consecutive_runs(stepped: SteppedCompiler) -> None:
    executor, plan = new_executor(), many_kernels()
    run_twice(executor, plan)
    assert run(executor, plan) == "uncompiled"
    assert stepped.step()
    assert [run(executor, plan) for _ in range(3)] == ["partly_compiled"] * 3
    assert stepped.step()
    assert [run(executor, plan) for _ in range(3)] == ["compiled"] * 3
    assert stepped.waiting == []


@pytest.mark.slow
def test_kernels_are_compiled_in_the_order_of_time(stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, executor, plan = counted(monkeypatch), new_executor(), many_kernels()
    first, rest = kernel_texts(plan)
    assert 1 < len(first) < FEW < len(first + rest)
    run_twice(executor, plan)
    stepped.step()
    assert texts == first
    stepped.step()
    assert texts == first + rest


@pytest.mark.usefixtures("stepped")
def test_steps_are_timed_in_the_first_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[int] = []
    record_run = ExecutionTiers.record_run
    monkeypatch.setattr(
        ExecutionTiers,
        "record_run",
        lambda self, plan, taken=(): (timed.append(len(taken)), record_run(self, plan, taken)),
    )
    executor, plan = new_executor(), many_kernels()
    for _ in range(3):
        run(executor, plan)
    assert timed == [len(plan.steps), 0, 0]


@pytest.mark.slow
def test_rest_of_a_plan_waits_behind_first_parts(stepped: SteppedCompiler) -> None:
    executor, one, other = new_executor(), many_kernels(), many_kernels()
    run_twice(executor, one)
    run_twice(executor, other)
    for expected in (
        ("partly_compiled", "uncompiled"),
        ("partly_compiled", "partly_compiled"),
        ("compiled", "partly_compiled"),
        ("compiled", "compiled"),
    ):
        stepped.step()
        assert (run(executor, one), run(executor, other)) == expected


def test_bits_change_only_when_kernels_arrive(stepped: SteppedCompiler) -> None:
    executor, plan = new_executor(), many_kernels(shown=True)

    def current_bits() -> bytes:
        return b"".join(y.tobytes() for y in executor.run(plan, FEED))

    stages = []
    for _ in range(3):
        results = [current_bits() for _ in range(3)]
        assert len({*results}) == 1
        stages.append(results[0])
        if stepped.waiting:
            stepped.step()
    assert stepped.waiting == []
    assert stages[0] != stages[-1]
    assert {current_bits() for _ in range(10)} == {stages[-1]}


def test_both_parts_have_the_precision_of_the_plan(stepped: SteppedCompiler) -> None:
    executor, plan = new_executor(), replace(many_kernels(), precision="bfloat16")
    run_twice(executor, plan)
    assert executor._tiers is not None
    tiers_seen = []
    while stepped.waiting:
        stepped.step()
        tiers_seen.append(executor._tiers.current(plan))
    assert [tier.name for tier in tiers_seen] == ["partly_compiled", "compiled"]
    assert {tier.plan.precision for tier in tiers_seen} == {"bfloat16"}


def test_plan_of_few_kernels_is_compiled_at_once(stepped: SteppedCompiler) -> None:
    executor, plan = new_executor(), layers()
    for _ in range(2):
        executor.run(plan, LAYERS_FEED)
    stepped.step()
    assert stepped.waiting == []
    executor.run(plan, LAYERS_FEED, deadline := Deadline(TIMEOUT))
    assert deadline.tier == "compiled"


def test_rest_is_requested_again_after_a_full_queue(stepped: SteppedCompiler) -> None:
    executor, plan = new_executor(), many_kernels()
    run_twice(executor, plan)
    stepped.refusing = True
    stepped.step()
    assert run(executor, plan) == "partly_compiled"
    assert stepped.waiting == []
    stepped.refusing = False
    assert run(executor, plan) == "partly_compiled"
    stepped.step()
    assert run(executor, plan) == "compiled"


def test_plan_stays_partly_compiled_if_the_rest_fails(
    stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, plan = new_executor(), many_kernels()
    run_twice(executor, plan)
    assert stepped.step()
    before = executor.run(plan, FEED)[0].tobytes()

    def refuse(_: str) -> bytes:
        raise KernelUnavailable("there is no compiler")

    monkeypatch.setattr(kernels, "machine_code", refuse)
    assert not stepped.step()
    assert [run(executor, plan) for _ in range(3)] == ["partly_compiled"] * 3
    assert executor.run(plan, FEED)[0].tobytes() == before
    assert stepped.waiting == []


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_condemned_plan_runs_without_kernels(
    steps: int, stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, executor, plan = counted(monkeypatch), new_executor(), many_kernels()
    run_twice(executor, plan)
    for _ in range(steps):
        stepped.step()
    executor.condemn(plan.digest)
    assert run(executor, plan) == "uncompiled"
    before = len(texts)
    while stepped.waiting:
        stepped.step()
    assert [run(executor, plan) for _ in range(3)] == ["uncompiled"] * 3
    assert len(texts) == before


def test_plan_condemned_during_its_last_kernel(stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, plan = new_executor(), many_kernels()
    last = kernel_texts(plan)[1][-1]
    texts, compiled = counted(monkeypatch), kernels.machine_code

    def condemning(text: str) -> bytes:
        if text == last:
            executor.condemn(plan.digest)
            assert run(executor, plan) == "uncompiled"
        return compiled(text)

    monkeypatch.setattr(kernels, "machine_code", condemning)
    run_twice(executor, plan)
    while stepped.waiting:
        stepped.step()
    assert texts[-1] == last
    assert run(executor, plan) == "uncompiled"


def test_instances_are_dropped_with_their_part(stepped: SteppedCompiler) -> None:
    executor, plan = new_executor(), many_kernels()
    run_twice(executor, plan)
    for _ in range(2):
        current_tier = executor._tiers and executor._tiers.current(plan)
        stepped.step()
        assert executor.instances.idle_bytes == 0, current_tier
        run(executor, plan)
        assert executor.instances.idle_bytes > 0


def test_stored_kernels_are_used_at_once(stepped: SteppedCompiler, tmp_path: Path) -> None:
    first, second = (new_executor(store=KernelStore(tmp_path)) for _ in range(2))
    run_twice(first, plan := many_kernels())
    while stepped.waiting:
        stepped.step()
    assert run(first, plan) == "compiled"
    run_twice(second, plan)
    stepped.step()
    assert run(second, plan) == "compiled"
    assert stepped.waiting == []


def test_no_partial_stage_if_parts_need_more_memory(stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compilable, "plan_part", lambda self, kept: None)
    executor, plan = new_executor(), many_kernels()
    run_twice(executor, plan)
    stepped.step()
    assert run(executor, plan) == "compiled"
    assert stepped.waiting == []


def test_larger_part_is_used_if_the_first_exceeds_memory(
    stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    plan_part = Compilable.plan_part

    def failing_once(self: Compilable, kept: Any) -> Plan | None:
        sizes.append(len(kept))
        return None if len(sizes) == 1 else plan_part(self, kept)

    monkeypatch.setattr(Compilable, "plan_part", failing_once)
    executor, plan = new_executor(), many_kernels()
    run_twice(executor, plan)
    stepped.step()
    assert run(executor, plan) == "partly_compiled"
    assert len(sizes) == 2
    assert sizes[0] < sizes[1]


def test_other_modes_have_one_tier() -> None:
    """Without a compiler, and in bitwise mode, which decides before the first run, with kernels or without."""
    fused = layers(fused=True)
    for executor, plan, tier in [
        (NumPyExecutor(), fused, "uncompiled"),
        (new_executor("bitwise"), fused, "compiled"),
        (new_executor("bitwise"), layers(), "uncompiled"),
    ]:
        for _ in range(3):
            executor.run(plan, LAYERS_FEED, deadline := Deadline(TIMEOUT))
            assert deadline.tier == tier


def test_watched_run_uses_no_kernels() -> None:
    executor, plan = new_executor("bitwise"), layers(fused=True)
    deadline = Deadline(TIMEOUT)
    executor.run(plan, LAYERS_FEED, deadline)
    executor.run(plan, LAYERS_FEED, deadline, lambda *_: None)
    assert deadline.tier == "uncompiled"
