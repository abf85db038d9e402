"""What a card launches, counted from plans: of a residual network, no sum by itself that a loop might have had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from benchmarks.launches import card_plan, launches, main
from benchmarks.problems.deep_networks import residual_network
from benchmarks.sides import LIMITS, recorded
from engine import Compiler, Plan, registry
from engine.oplib.rowwise import Rowwise
from engine.planning.fit import compiled_within
from engine.planning.fused import Fused
from engine.planning.plan import graph_of

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
    split, whole = (launches(plan) for plan in plans())
    assert split.total() < whole.total() - 10
    assert "sum" not in split


def test_constants_and_views_are_none() -> None:
    split, _ = plans()
    assert not {"full", "constant", "reshape", "get_output", "fused"} & {*launches(split)}


def test_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    main(["W1", "W2"])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("W1 ")
    assert " 8 matmul" in second
