"""Truths: independent reference values of every op, which match the op and do not match a doubled one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from engine import registry
from engine.ir.op import Definition, Kernel, NoGradient
from engine.ir.sample import Truth
from tests.contract.cases import EXECUTOR, definition_place
from tests.contract.truths import check, facts, states_gradient
from tests.contract.wrong import doubled
from tests.sampling import together

#: without ops that run functions: tests/engine/ops compares these with unrolled steps and closed forms
OPS = [op for op in registry().ops.values() if not op.functions]

#: parts that an op does not implement itself; its truths check the code that does
EXEMPT = {
    ("input", "value"): "it is fed",
    ("parameter", "value"): "it is fed",
    ("grad", "value"): "a transform writes the gradient out as nodes, before anything runs",
    ("grad", "gradient"): "as its value",
}
PARTS = {"value": ("value",), "gradient": ("gradient",), "value and gradient": ("value", "gradient")}


def has_part(op: Definition, part: str) -> bool:
    """Return whether an op implements the part itself."""
    return (op.name, part) not in EXEMPT and (part == "value" or is_differentiated(op))


def is_differentiated(op: Definition) -> bool:
    """Return whether the op is differentiable with respect to some operand."""
    return bool(op.operands) and not isinstance(op.vjp, NoGradient)


def missing_truth(op: Definition, aspect: str) -> str:
    return (
        f"{aspect} of {op.name} is not held by any truth, so a doubled one would pass every other test: "
        f"state in {definition_place(op)}, beside `samples`, "
        "truths = (Truth(operands=…, value=…, gradients=…, source=…),), with "
        "numbers other than 0 that were found without the op; CONTRIBUTING.md has an example"
    )


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_op_has_independent_truth(op: Definition) -> None:
    truths = facts(op)
    assert truths, missing_truth(op, "the value")
    if is_differentiated(op):
        assert any(map(states_gradient, truths)), missing_truth(op, "the gradient")


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_engine_matches_truths(op: Definition) -> None:
    for fact in facts(op):
        check(op, fact)


def matches_truths(op: Definition) -> bool:
    try:
        for fact in facts(op):
            check(op, fact)
    except AssertionError:
        return False
    return True


def doubled_cases() -> Iterator[tuple[Definition, str]]:
    for op in OPS:
        yield from ((op, name) for name, parts in PARTS.items() if all(has_part(op, part) for part in parts))


@together
@pytest.mark.parametrize(("op", "doubled_part"), list(doubled_cases()), ids=str)
def test_doubled_op_fails_truths(op: Definition, doubled_part: str) -> None:
    # Interpret the plan: a bound plan takes its views once, before the op is doubled.
    by_steps = mock.patch.object(EXECUTOR, "execute", EXECUTOR.interpret)
    with by_steps, doubled(op, value="value" in PARTS[doubled_part], gradient="gradient" in PARTS[doubled_part]):
        is_detected = not matches_truths(op)
    assert is_detected, missing_truth(op, f"the {doubled_part}")


@pytest.mark.parametrize(("name", "part"), EXEMPT, ids=str)
def test_exempt_part_is_not_implemented(name: str, part: str) -> None:
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
def test_truth_checks_one_gradient_per_operand(name: str, truth: Truth) -> None:
    """Accept several results, cotangents and operands without a gradient, but require one gradient per operand."""
    op = registry().ops[name]
    check(op, truth)
    check(op, replace(truth, gradients=None))
    for wrong in ([None] * len(truth.operands), [], [*truth.gradients, 0.0]):
        with pytest.raises(AssertionError, match=f"gradient of {name}|a truth of {name}"):
            check(op, replace(truth, gradients=wrong))


def test_truth_names_its_source() -> None:
    assert not [op.name for op in OPS for truth in op.truths if not truth.source.strip()]
