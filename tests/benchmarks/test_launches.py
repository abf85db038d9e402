"""Launches of workloads on a card, counted without one; of a residual network, no sum that a loop might have had."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from benchmarks.launches import KINDS, TERMS, WITH_CUDNN, card_plan, launches_of, launches_of_plan, main
from benchmarks.problems.deep_networks import residual_network
from benchmarks.problems.networks import perceptron
from benchmarks.sides import LIMITS, recorded
from benchmarks.suite import find
from engine import Compiler, Plan, registry
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import graph_of
from engine.cuda.binding import card_recipe_for
from engine.cuda.card_recipe import CardRecipe
from engine.ir.op import Kernel
from engine.ops.reduce.sums import Rowwise

SMALL = residual_network((8, 16), blocks=1, batch=4, side=32, classes=10)


@cache
def plans() -> tuple[Plan, Plan]:
    """Of value and all gradients: with sums in two, and with sums as they are stated."""
    plan = Compiler(LIMITS).compile(*recorded(SMALL)).plan
    whole = compiled_within(graph_of(plan, registry()), plan.peak_bytes, 1, microkernels=False)
    assert whole is not None
    return card_plan(SMALL), whole.plan


def written_for_one_sum(plan: Plan) -> Iterator[tuple[int, ...]]:
    """The axes of reductions that read the result of a loop which nobody else reads."""
    made = {step.result: step for step in plan.steps}
    readers = Counter(operand for step in plan.steps for operand in step.operands)
    for step in plan.steps:
        if isinstance(step.op, Rowwise) and step.op.reduces and readers[step.operands[0]] == 1:
            of = made.get(step.operands[0])
            if of is not None and of.op.name == "get_output" and isinstance(made[of.operands[0]].op, Fused):
                yield tuple(step.attrs["axes"])


def test_no_loop_writes_a_tensor_for_one_sum() -> None:
    split, whole = plans()
    assert Counter(written_for_one_sum(whole)) == {(0, 2, 3): 24}
    assert not [*written_for_one_sum(split)]


def test_sums_that_are_left_read_what_no_loop_made() -> None:
    """Means of what convolutions give."""
    split, _ = plans()
    left = [step for step in split.steps if isinstance(step.op, Rowwise)]
    made = {step.result: step.op.name for step in split.steps}
    assert {made[step.operands[0]] for step in left} <= {"conv2d"}


def test_there_are_fewer_launches_than_there_were() -> None:
    split, whole = (sum(each.launches for each in launches_of_plan(plan)) for plan in plans())
    assert split < whole - 10


def without(kind: type[Kernel]) -> Callable[..., CardRecipe | None]:
    """Recipes, but for ops of a class."""
    return lambda op, *args, **attrs: None if isinstance(op, kind) else card_recipe_for(op, *args, **attrs)


#: the most that a run may launch; and where cuDNN is installed
MOST = {"W1": (1, 1), "W2": (20, 20), "W4": (37, 37), "W5": (30, 23), "N1": (324, 215), "N2": (255, 255)}
SLOW = [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("N")) for name in MOST]


@pytest.mark.parametrize("name", SLOW)
def test_a_run_is_one_recording_of_few_launches_none_of_them_cupys(name: str) -> None:
    found = [launches_of(find(name)(), terms) for terms in (TERMS, WITH_CUDNN)]
    assert [each.recordings for each in found] == [1, 1]
    assert all(each.total <= most for each, most in zip(found, MOST[name], strict=True))
    assert not any(each.by_cupy for each in found)


def test_what_cudnn_computes_is_counted_as_one_launch_each() -> None:
    """Two convolutions, the way back to what the second was given, and to both kernels."""
    assert launches_of(find("W5")(), WITH_CUDNN).kinds["cuDNN's"] == 5


def test_products_are_counted_and_none_is_cupys() -> None:
    found = launches_of(perceptron(20, 16, 12, 10, batch=8))
    assert found.kinds["products"] == 8  # three forth, and five back: nobody asks for the gradient of the data
    assert "matmul" not in found.by_cupy


def test_what_is_not_recorded_divides_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.ops.index.gather import Gather

    monkeypatch.setattr(Gather, "is_captured", False)
    monkeypatch.setattr("benchmarks.launches.card_recipe_for", without(Gather))
    assert launches_of(perceptron(20, 16, 12, 10, batch=8)).recordings == 2


def test_each_is_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["launches", "W1"])
    main()
    shown = capsys.readouterr().out
    assert shown.startswith("W1        1 launches:")
    assert all(kind in shown for kind in KINDS)
