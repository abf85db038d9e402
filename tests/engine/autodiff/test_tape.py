"""Tapes of rules: what is copied is what the rule writes, for every op, wherever it stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.autodiff import vjp as tape
from engine.autodiff.vjp import vjp
from engine.ir.errors import OverBudget, TooManyNodes
from engine.ir.text import print_graph
from tests.contract.cases import Case, all_cases, each, has_rule
from tests.sampling import together

FLOAT64 = np.dtype("float64")
VECTOR = TensorType((3,), FLOAT64)


def written(case: Case) -> tuple[str, int] | None:
    """The gradients of what two nodes make that say what the case says, as text; None where it has none."""
    made = case.write(case.arrays())
    builder, by = made.builder, made.float_operands
    again = builder.copy(made.outputs[0].node, [builder.value(i) for i in made.outputs[0].node.operands])
    ends = [end for end in (*made.float_outputs, again) if end.type.is_differentiable]
    if not by or not ends:
        return None
    found = vjp(builder, [(end, end.full_like(1.0)) for end in ends], by)
    return print_graph(builder.graph([g for g in found if g is not None] + ends)), len(builder.nodes)


@together
@each(has_rule)
def test_what_is_copied_is_what_the_rule_writes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = [written(case) for _ in range(2)]
    monkeypatch.setattr(tape, "tape_of", lambda op, told, attrs: None)
    assert copied == [written(case)] * 2


@pytest.mark.slow
def test_most_rules_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would compare the rule with itself."""
    told, tape_of = list[bool](), tape.Tapes.get

    def noted(*args: Any) -> tape.Tape | None:
        found = tape_of(*args)
        told.append(found is not None)
        return found

    monkeypatch.setattr(tape.Tapes, "get", noted)
    for case in filter(has_rule, all_cases()):
        written(case)
    assert sum(told) > 0.9 * len(told) > 900


def test_an_operand_that_is_read_twice() -> None:
    builder = Builder(registry())
    x, z = (builder.leaf(VECTOR, i) for i in range(2))
    for y in (x * z, x * x):
        (found,) = vjp(builder, [(y, y.full_like(1.0))], [x])
        assert found is not None
    assert builder.nodes[found.index].op.name == "add"  # x g + x g


@pytest.mark.parametrize("room", range(1, 6))
def test_the_rule_says_where_the_limit_is(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tape that does not fit is not begun: as many nodes are written as without it, and the message is the same."""

    def refused() -> tuple[str, int]:
        builder = Builder(registry())
        x = builder.leaf(VECTOR, 0)
        y = x.tanh()
        seed = y.full_like(1.0)
        builder.limits = Limits(nodes=len(builder.nodes) + room)
        try:
            vjp(builder, [(y, seed)], [x])
        except TooManyNodes as error:
            return str(error), len(builder.nodes)
        return "", len(builder.nodes)

    taped = refused()
    monkeypatch.setattr(tape, "tape_of", lambda op, told, attrs: None)
    assert refused() == taped


def test_what_a_tape_writes_is_within_the_bytes() -> None:
    """The outer product's parts are larger than anything before them."""

    def gradient(limits: Limits) -> None:
        builder = Builder(registry())
        x = builder.leaf(TensorType((64, 1), FLOAT64), 0)
        z = builder.leaf(TensorType((1, 64), FLOAT64), 1)
        y = (x + z).sum()
        seed = y.full_like(1.0)
        builder.limits = limits
        vjp(builder, [(y, seed)], [x])

    gradient(Limits())
    with pytest.raises(OverBudget):
        gradient(Limits(bytes=64 * 64 * 8 - 1))


def taped(op: str, *types: TensorType, **attrs: Any) -> tape.Tape | None:
    """What is recorded of an op's rule, its result of the type of its first operand."""
    definition = registry().ops[op]
    return tape._record(definition, (registry(), definition.vjp, types[0], *types), attrs)


def test_a_tape_is_what_a_rule_writes() -> None:
    """Numbered from the cotangent, the result and the operands on."""
    found = taped("mul", TensorType((3, 2), FLOAT64), TensorType((2,), FLOAT64))
    assert found is not None
    assert [(node.op.name, node.operands) for node in found.nodes] == [("mul", (0, 3)), ("mul", (0, 2)), ("sum", (5,))]
    assert found[1:] == ((4, 6), 2, 48)
    assert taped("neg", VECTOR) is not None
    assert taped("identity", VECTOR) == ((), (0,), 0, 0)
    assert taped("where", TensorType((3,), np.dtype("bool")), VECTOR, VECTOR) is not None  # none by the condition


def test_what_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "LONGEST_TAPE", 2)
    assert taped("mul", VECTOR, VECTOR) is not None
    monkeypatch.setattr(tape, "LONGEST_TAPE", 1)
    assert taped("mul", VECTOR, VECTOR) is None
    monkeypatch.setattr(tape, "is_small", lambda attrs: False)
    assert taped("neg", VECTOR) is None
