"""Launch counts of workloads on a card, without one; in a residual network, kernels include all sums that they can."""

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
    """Plans of the value and all gradients: with split sums, and with whole sums."""
    plan = Compiler(LIMITS).compile(*recorded(SMALL)).plan
    whole = compiled_within(graph_of(plan, registry()), plan.peak_bytes, 1, microkernels=False)
    assert whole is not None
    return card_plan(SMALL), whole.plan


def axes_of_unfused_sums(plan: Plan) -> Iterator[tuple[int, ...]]:
    """The axes of reductions that are the only reader of a kernel's result."""
    producers = {step.result: step for step in plan.steps}
    readers = Counter(operand for step in plan.steps for operand in step.operands)
    for step in plan.steps:
        if isinstance(step.op, Rowwise) and step.op.reduces and readers[step.operands[0]] == 1:
            producer = producers.get(step.operands[0])
            if (
                producer is not None
                and producer.op.name == "get_output"
                and isinstance(producers[producer.operands[0]].op, Fused)
            ):
                yield tuple(step.attrs["axes"])


def test_no_kernel_writes_a_tensor_for_a_single_sum() -> None:
    split, whole = plans()
    assert Counter(axes_of_unfused_sums(whole)) == {(0, 2, 3): 28}
    assert not [*axes_of_unfused_sums(split)]


def test_remaining_sums_read_convolutions() -> None:
    """They are means of the results of convolutions."""
    split, _ = plans()
    sums = [step for step in split.steps if isinstance(step.op, Rowwise)]
    producers = {step.result: step.op.name for step in split.steps}
    assert {producers[step.operands[0]] for step in sums} <= {"conv2d"}


def test_split_sums_need_fewer_launches() -> None:
    split, whole = (sum(each.launches for each in launches_of_plan(plan)) for plan in plans())
    assert split < whole - 10


def without(kind: type[Kernel]) -> Callable[..., CardRecipe | None]:
    """The recipes of all ops except those of a class."""
    return lambda op, *args, **attrs: None if isinstance(op, kind) else card_recipe_for(op, *args, **attrs)


#: most launches of a run, without and with cuDNN
MOST = {"W1": (1, 1), "W2": (20, 20), "W4": (37, 37), "W5": (30, 23), "N1": (324, 215), "N2": (255, 255)}
SLOW = [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("N")) for name in MOST]


@pytest.mark.parametrize("name", SLOW)
def test_workload_is_one_graph_of_few_launches_without_cupy(name: str) -> None:
    counts = [launches_of(find(name)(), terms) for terms in (TERMS, WITH_CUDNN)]
    assert [each.recordings for each in counts] == [1, 1]
    assert all(each.total <= most for each, most in zip(counts, MOST[name], strict=True))
    assert not any(each.by_cupy for each in counts)


def test_each_cudnn_convolution_is_one_launch() -> None:
    """Two convolutions, the gradient of the second one's input, and the gradients of both kernels."""
    assert launches_of(find("W5")(), WITH_CUDNN).kinds["cuDNN's"] == 5


def test_products_are_counted_and_none_uses_cupy() -> None:
    counts = launches_of(perceptron(20, 16, 12, 10, batch=8))
    assert counts.kinds["products"] == 8  # three forward and five backward: the gradient of the data is not requested
    assert "matmul" not in counts.by_cupy


def test_uncaptured_op_splits_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.ops.index.gather import Gather

    monkeypatch.setattr(Gather, "is_captured", False)
    monkeypatch.setattr("benchmarks.launches.card_recipe_for", without(Gather))
    assert launches_of(perceptron(20, 16, 12, 10, batch=8)).recordings == 2


def test_each_workload_is_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["launches", "W1"])
    main()
    shown = capsys.readouterr().out
    assert shown.startswith("W1        1 launches:")
    assert all(kind in shown for kind in KINDS)
