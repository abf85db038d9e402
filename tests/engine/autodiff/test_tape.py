"""Tapes of rules: for every op, a copied tape writes the nodes that the rule writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.autodiff import vjp as tape
from engine.autodiff.vjp import vjp
from engine.ir.errors import OverBudget, TooManyNodes
from engine.ir.text import print_graph
from tests.contract.cases import Case, all_cases, has_rule, sample
from tests.sampling import together

FLOAT64 = np.dtype("float64")
VECTOR = TensorType((3,), FLOAT64)


def written(case: Case) -> tuple[str, int] | None:
    """Print the gradients of two equal nodes of the case's op. Return None if it has none."""
    graph = case.write(case.arrays())
    builder, wrt = graph.builder, graph.float_operands
    copy = builder.copy(graph.outputs[0].node, [builder.value(i) for i in graph.outputs[0].node.operands])
    ends = [end for end in (*graph.float_outputs, copy) if end.type.is_differentiable]
    if not wrt or not ends:
        return None
    gradients = vjp(builder, [(end, end.full_like(1.0)) for end in ends], wrt)
    return print_graph(builder.graph([g for g in gradients if g is not None] + ends)), len(builder.nodes)


@together
@sample(has_rule)
def test_copied_tape_matches_the_rule(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = [written(case) for _ in range(2)]
    monkeypatch.setattr(tape, "tape_of", lambda op, signature, attrs: None)
    assert copied == [written(case)] * 2


@pytest.mark.slow
def test_most_rules_have_tapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would compare the rule with itself."""
    copied, tape_of = list[bool](), tape.Tapes.get

    def counted(*args: Any) -> tape.Tape | None:
        recorded = tape_of(*args)
        copied.append(recorded is not None)
        return recorded

    monkeypatch.setattr(tape.Tapes, "get", counted)
    for case in filter(has_rule, all_cases()):
        written(case)
    assert sum(copied) > 0.9 * len(copied) > 900


def test_operand_that_is_read_twice() -> None:
    builder = Builder(registry())
    x, z = (builder.leaf(VECTOR, i) for i in range(2))
    for y in (x * z, x * x):
        (gradient,) = vjp(builder, [(y, y.full_like(1.0))], [x])
        assert gradient is not None
    assert builder.nodes[gradient.index].op.name == "add"  # x g + x g


@pytest.mark.parametrize("room", range(1, 6))
def test_tape_over_the_node_limit_fails_like_the_rule(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tape that does not fit is not started: the number of nodes and the message are those of the rule."""

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
    monkeypatch.setattr(tape, "tape_of", lambda op, signature, attrs: None)
    assert refused() == taped


def test_tape_respects_the_byte_limit() -> None:
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
    """Record the tape of an op's rule, for a result of the type of the first operand."""
    definition = registry().ops[op]
    return tape._record(definition, (registry(), definition.vjp, types[0], *types), attrs)


def test_tape_records_the_nodes_of_a_rule() -> None:
    """Values are numbered from the cotangent, the result and the operands on."""
    recorded = taped("mul", TensorType((3, 2), FLOAT64), TensorType((2,), FLOAT64))
    assert recorded is not None
    assert [(node.op.name, node.operands) for node in recorded.nodes] == [
        ("mul", (0, 3)),
        ("mul", (0, 2)),
        ("sum", (5,)),
    ]
    assert recorded[1:] == ((4, 6), 2, 48)
    assert taped("neg", VECTOR) is not None
    assert taped("identity", VECTOR) == ((), (0,), 0, 0)
    assert taped("where", TensorType((3,), np.dtype("bool")), VECTOR, VECTOR) is not None  # none wrt the condition


def test_long_tapes_and_large_attributes_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "LONGEST_TAPE", 2)
    assert taped("mul", VECTOR, VECTOR) is not None
    monkeypatch.setattr(tape, "LONGEST_TAPE", 1)
    assert taped("mul", VECTOR, VECTOR) is None
    monkeypatch.setattr(tape, "is_small", lambda attrs: False)
    assert taped("neg", VECTOR) is None
