"""Plans of many kernels: compiled in the order of the time that a run spends without them, and used in two steps."""

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
PATIENCE = 60.0


def many(*, shown: bool = False) -> Plan:
    """A loop for each function, a running sum between any two: the last one, or all of these `shown`."""
    sums = [Builder(registry()).leaf(TensorType(X.shape, X.dtype), 0)]
    for name in FUNCTIONS:
        sums.append((getattr(sums[-1], name)() * 0.01).cumsum(axis=0))
    return make_plan(sums[0].builder.graph(sums[1:] if shown else sums[-1:]), Limits())


def seconds(plan: Plan) -> list[float]:
    """What the steps take: each function longer than the one before, and the last of them by far the longest."""
    taken = {name: 1e-6 * (k + 2) for k, name in enumerate(FUNCTIONS)} | {FUNCTIONS[-1]: 90e-6}
    return [taken.get(step.op.name, 1e-6) for step in plan.steps]


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> SteppedCompiler:
    """What is to be compiled waits here, and first runs take what `seconds` says."""
    queue, ran = SteppedCompiler(), ExecutionTiers.record_run
    monkeypatch.setattr(tiers, "BackgroundCompiler", lambda: queue)
    monkeypatch.setattr(
        ExecutionTiers, "record_run", lambda self, plan, taken=(): ran(self, plan, taken and seconds(plan))
    )
    return queue


def run(executor: NumPyExecutor, plan: Plan) -> str:
    """Run it once; in which tier that was. The result is right."""
    deadline = Deadline(PATIENCE)
    found = executor.run(plan, FEED, deadline)
    np.testing.assert_allclose(found[0], NumPyExecutor().interpret(plan, FEED)[0], 1e-4, 1e-6)
    return deadline.tier


def executor(determinism: Any = "fast", **more: Any) -> NumPyExecutor:
    return NumPyExecutor(determinism=determinism, compile="on", **more)


def twice(made: NumPyExecutor, plan: Plan) -> None:
    """What makes a plan be compiled."""
    assert [run(made, plan) for _ in range(2)] == ["uncompiled"] * 2


def whole(plan: Plan) -> Plan:
    """The plan with all that can be compiled."""
    within = compiled_within(graph_of(plan, registry()), plan.peak_bytes, 1)
    assert within is not None
    return within.plan


def loops(plan: Plan) -> list[list[str]]:
    """The texts of a plan's loops, in the order of the time that a run spends in each: first part, and others."""
    found = compile_order(whole(plan), plan, seconds(plan))
    first = first_parts(found)[0]
    parts: list[list[str]] = [[], []]
    for shared in found:
        (op,) = shared.ops
        assert isinstance(op, Fused)
        parts[op not in first].append(llvm_text(op.expanded, lanes_of(op.expanded, op.iteration_space.columns)))
    return parts


@pytest.mark.slow
def test_the_tier_of_each_run(stepped: SteppedCompiler) -> None:
    made, plan = executor(), many()
    twice(made, plan)
    assert run(made, plan) == "uncompiled"
    assert stepped.step()
    assert [run(made, plan) for _ in range(3)] == ["partly_compiled"] * 3
    assert stepped.step()
    assert [run(made, plan) for _ in range(3)] == ["compiled"] * 3
    assert stepped.waiting == []


@pytest.mark.slow
def test_kernels_are_compiled_in_the_order_of_time(stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, made, plan = counted(monkeypatch), executor(), many()
    first, rest = loops(plan)
    assert 1 < len(first) < FEW < len(first + rest)
    twice(made, plan)
    stepped.step()
    assert texts == first
    stepped.step()
    assert texts == first + rest


@pytest.mark.usefixtures("stepped")
def test_steps_are_timed_in_the_first_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    ran = ExecutionTiers.record_run
    monkeypatch.setattr(
        ExecutionTiers, "record_run", lambda self, plan, taken=(): (told.append(len(taken)), ran(self, plan, taken))
    )
    made, plan = executor(), many()
    for _ in range(3):
        run(made, plan)
    assert told == [len(plan.steps), 0, 0]


@pytest.mark.slow
def test_the_rest_waits_behind_what_others_want_first(stepped: SteppedCompiler) -> None:
    made, one, other = executor(), many(), many()
    twice(made, one)
    twice(made, other)
    for expected in (
        ("partly_compiled", "uncompiled"),
        ("partly_compiled", "partly_compiled"),
        ("compiled", "partly_compiled"),
        ("compiled", "compiled"),
    ):
        stepped.step()
        assert (run(made, one), run(made, other)) == expected


def test_bits_change_as_kernels_arrive_and_never_after(stepped: SteppedCompiler) -> None:
    made, plan = executor(), many(shown=True)

    def found_now() -> bytes:
        return b"".join(y.tobytes() for y in made.run(plan, FEED))

    seen = []
    for _ in range(3):
        found = [found_now() for _ in range(3)]
        assert len({*found}) == 1
        seen.append(found[0])
        if stepped.waiting:
            stepped.step()
    assert stepped.waiting == []
    assert seen[0] != seen[-1]
    assert {found_now() for _ in range(10)} == {seen[-1]}


def test_what_comes_first_and_the_rest_have_the_precision_of_the_plan(stepped: SteppedCompiler) -> None:
    made, plan = executor(), replace(many(), precision="bfloat16")
    twice(made, plan)
    assert made._tiers is not None
    found = []
    while stepped.waiting:
        stepped.step()
        found.append(made._tiers.current(plan))
    assert [tier.name for tier in found] == ["partly_compiled", "compiled"]
    assert {tier.plan.precision for tier in found} == {"bfloat16"}


def test_a_plan_of_few_kernels_is_waited_for(stepped: SteppedCompiler) -> None:
    made, plan = executor(), layers()
    for _ in range(2):
        made.run(plan, LAYERS_FEED)
    stepped.step()
    assert stepped.waiting == []
    made.run(plan, LAYERS_FEED, deadline := Deadline(PATIENCE))
    assert deadline.tier == "compiled"


def test_what_was_refused_in_a_full_queue_is_asked_for_again(stepped: SteppedCompiler) -> None:
    made, plan = executor(), many()
    twice(made, plan)
    stepped.refusing = True
    stepped.step()
    assert run(made, plan) == "partly_compiled"
    assert stepped.waiting == []
    stepped.refusing = False
    assert run(made, plan) == "partly_compiled"
    stepped.step()
    assert run(made, plan) == "compiled"


def test_where_the_rest_cannot_be_compiled_it_stays_with_what_is_there(
    stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, plan = executor(), many()
    twice(made, plan)
    assert stepped.step()
    before = made.run(plan, FEED)[0].tobytes()

    def refuse(_: str) -> bytes:
        raise KernelUnavailable("there is no compiler")

    monkeypatch.setattr(kernels, "machine_code", refuse)
    assert not stepped.step()
    assert [run(made, plan) for _ in range(3)] == ["partly_compiled"] * 3
    assert made.run(plan, FEED)[0].tobytes() == before
    assert stepped.waiting == []


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_plan_that_is_condemned_meanwhile_runs_without_kernels(
    steps: int, stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, made, plan = counted(monkeypatch), executor(), many()
    twice(made, plan)
    for _ in range(steps):
        stepped.step()
    made.condemn(plan.digest)
    assert run(made, plan) == "uncompiled"
    before = len(texts)
    while stepped.waiting:
        stepped.step()
    assert [run(made, plan) for _ in range(3)] == ["uncompiled"] * 3
    assert len(texts) == before


def test_a_plan_that_is_condemned_while_its_last_kernel_is_compiled(
    stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, plan = executor(), many()
    last = loops(plan)[1][-1]
    texts, compiled = counted(monkeypatch), kernels.machine_code

    def condemning(text: str) -> bytes:
        if text == last:
            made.condemn(plan.digest)
            assert run(made, plan) == "uncompiled"
        return compiled(text)

    monkeypatch.setattr(kernels, "machine_code", condemning)
    twice(made, plan)
    while stepped.waiting:
        stepped.step()
    assert texts[-1] == last
    assert run(made, plan) == "uncompiled"


def test_what_is_bound_to_a_part_goes_with_it(stepped: SteppedCompiler) -> None:
    made, plan = executor(), many()
    twice(made, plan)
    for _ in range(2):
        somebody_runs = made._tiers and made._tiers.current(plan)
        stepped.step()
        assert made.instances.idle_bytes == 0, somebody_runs
        run(made, plan)
        assert made.instances.idle_bytes > 0


def test_kernels_that_are_kept_are_used_at_once(stepped: SteppedCompiler, tmp_path: Path) -> None:
    first, again = (executor(store=KernelStore(tmp_path)) for _ in range(2))
    twice(first, plan := many())
    while stepped.waiting:
        stepped.step()
    assert run(first, plan) == "compiled"
    twice(again, plan)
    stepped.step()
    assert run(again, plan) == "compiled"
    assert stepped.waiting == []


def test_where_a_part_needs_more_memory_all_kernels_are_waited_for(
    stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compilable, "plan_part", lambda self, kept: None)
    made, plan = executor(), many()
    twice(made, plan)
    stepped.step()
    assert run(made, plan) == "compiled"
    assert stepped.waiting == []


def test_where_the_first_part_needs_more_memory_a_larger_one_is_used(
    stepped: SteppedCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    partly = Compilable.plan_part

    def second(self: Compilable, kept: Any) -> Plan | None:
        asked.append(len(kept))
        return None if len(asked) == 1 else partly(self, kept)

    monkeypatch.setattr(Compilable, "plan_part", second)
    made, plan = executor(), many()
    twice(made, plan)
    stepped.step()
    assert run(made, plan) == "partly_compiled"
    assert len(asked) == 2
    assert asked[0] < asked[1]


def test_other_ways_have_one_tier() -> None:
    """Without a compiler; and where it is decided before the first run, of a plan with loops and of one without."""
    fused = layers(fused=True)
    for made, plan, tier in [
        (NumPyExecutor(), fused, "uncompiled"),
        (executor("bitwise"), fused, "compiled"),
        (executor("bitwise"), layers(), "uncompiled"),
    ]:
        for _ in range(3):
            made.run(plan, LAYERS_FEED, deadline := Deadline(PATIENCE))
            assert deadline.tier == tier


def test_who_looks_on_sees_no_kernels() -> None:
    made, plan = executor("bitwise"), layers(fused=True)
    deadline = Deadline(PATIENCE)
    made.run(plan, LAYERS_FEED, deadline)
    made.run(plan, LAYERS_FEED, deadline, lambda *_: None)
    assert deadline.tier == "uncompiled"
