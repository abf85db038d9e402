"""A wrong op cannot be shipped: of each, something independent is known, which agrees, and not with twice the op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from engine import registry
from engine.ir.op import Definition, Kernel, NoGradient
from engine.ir.sample import Truth
from tests.contract.cases import EXECUTOR, place
from tests.contract.truths import check, facts, speaks_of_gradient
from tests.contract.wrong import doubled
from tests.sampling import together

#: but for those that run functions: tests/engine/ops compares each with its steps written out, and with closed forms
OPS = [op for op in registry().ops.values() if not op.functions]

#: what an op leaves to others, who are held by its truths all the same
NOT_ITS_OWN = {
    ("input", "value"): "it is fed",
    ("parameter", "value"): "it is fed",
    ("grad", "value"): "a transform writes the gradient out as nodes, before anything runs",
    ("grad", "gradient"): "as its value",
}
PARTS = {"value": ("value",), "gradient": ("gradient",), "value and gradient": ("value", "gradient")}


def has(op: Definition, part: str) -> bool:
    """Whether an op has a kernel or a formula, or a gradient, of its own."""
    return (op.name, part) not in NOT_ITS_OWN and (part == "value" or is_differentiated(op))


def is_differentiated(op: Definition) -> bool:
    """Whether it has operands that a gradient may be taken by."""
    return bool(op.operands) and not isinstance(op.vjp, NoGradient)


def asked_for(op: Definition, what: str) -> str:
    return (
        f"{what} of {op.name} is not held by any truth, so a doubled one would pass every other test: "
        f"state in {place(op)}, beside `samples`, truths = (Truth(operands=…, value=…, gradients=…, source=…),), with "
        "numbers other than 0 that were found without the op; CONTRIBUTING.md has an example"
    )


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_something_independent_is_known(op: Definition) -> None:
    known = facts(op)
    assert known, asked_for(op, "the value")
    if is_differentiated(op):
        assert any(map(speaks_of_gradient, known)), asked_for(op, "the gradient")


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_the_engine_agrees(op: Definition) -> None:
    for fact in facts(op):
        check(op, fact)


def agrees(op: Definition) -> bool:
    try:
        for fact in facts(op):
            check(op, fact)
    except AssertionError:
        return False
    return True


def doublings() -> Iterator[tuple[Definition, str]]:
    for op in OPS:
        yield from ((op, which) for which, parts in PARTS.items() if all(has(op, part) for part in parts))


@pytest.mark.parametrize(("op", "which"), list(doublings()), ids=str)
def test_a_doubled_op_is_noticed(op: Definition, which: str) -> None:
    # Step by step: a bound plan takes its views once, before there is anything to double.
    by_steps = mock.patch.object(EXECUTOR, "execute", EXECUTOR.interpret)
    with by_steps, doubled(op, value="value" in PARTS[which], gradient="gradient" in PARTS[which]):
        noticed = not agrees(op)
    assert noticed, asked_for(op, f"the {which}")


@pytest.mark.parametrize(("name", "part"), NOT_ITS_OWN, ids=str)
def test_what_an_op_leaves_to_others_it_does_not_have(name: str, part: str) -> None:
    op = registry().ops[name]
    assert not isinstance(op, Kernel) if part == "value" else op.vjp is None


TOPK = Truth(
    operands=[[3.0, 1.0, 2.0]],
    attrs={"k": 2},
    value=([3.0, 2.0], [0, 2]),
    cotangent=([1.0, 10.0], None),
    gradients=[[1.0, 0.0, 10.0]],
    source="by hand",
)
WHERE = Truth(
    operands=[[True, False], [1.0, 2.0], 3.0],
    value=[1.0, 3.0],
    gradients=[None, [1.0, 0.0], 1.0],
    source="by hand",
)


@pytest.mark.parametrize(("name", "truth"), [("topk", TOPK), ("where", WHERE)], ids=["topk", "where"])
def test_what_a_truth_can_state(name: str, truth: Truth) -> None:
    """Several results, operands without a gradient, cotangents; of the gradients, one an operand."""
    op = registry().ops[name]
    check(op, truth)
    check(op, replace(truth, gradients=None))
    for wrong in ([None] * len(truth.operands), [], [*truth.gradients, 0.0]):
        with pytest.raises(AssertionError, match=f"gradient of {name}|a truth of {name}"):
            check(op, replace(truth, gradients=wrong))


def test_a_truth_names_its_source() -> None:
    assert not [op.name for op in OPS for truth in op.truths if not truth.source.strip()]
