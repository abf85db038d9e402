"""All faults of a graph come in one error: the first is raised with the others attached, ten at most."""

from __future__ import annotations

import gc
import time
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from engine import Compiler, Deadline, EngineError, Faults, Limits, Program, Statement, TensorType, registry
from engine.ir.errors import MOST_FAULTS, BadReference, DeadlineExceeded, MissingFeed, OverBudget, TooManyNodes

F = TensorType((2,), np.dtype("float64"))
M = TensorType((2, 3), np.dtype("float64"))
INT = TensorType((2,), np.dtype("int64"))


def node(op: str, *operands: int, name: str | None = None, **attrs: Any) -> Statement:
    return Statement(registry().get(op), operands, attrs, name)


X = node("parameter")


def faults(
    statements: list[Statement],
    types: dict[int, TensorType] | None = None,
    limits: Limits | None = None,
    **request: Any,
) -> list[str]:
    """The message that is raised, and those attached."""
    with pytest.raises(EngineError) as caught:
        Compiler(limits or Limits()).forward(Program(registry(), statements), types or {}, **request)
    assert all(not other.others for other in caught.value.others)
    return [error.detail for error in (caught.value, *caught.value.others)]


# ---------------------------------------------------------------- form


def test_all_faults_of_form_are_reported() -> None:
    assert faults([node("neg", 3), X, node("sum", 1, axs=0, name="total"), node("relu", 1, 1), node("cast", 1)]) == [
        "node 0 (neg): operand 0 must be an earlier node (node 0 has none), but is 3",
        "node 2 (sum “total”): there is no attribute axs here (known: axes, keepdims); did you mean axes?",
        "node 4 (cast): attribute dtype is required",
        "node 3 (relu): takes 1 operand (x), but got 2",
    ]


def test_operand_and_attribute_faults_of_one_node_are_reported() -> None:
    assert faults([X, node("sum", 7, dim=0, keepdim=True, axes=1)]) == [
        "node 1 (sum): operand 0 must be an earlier node, 0 to 0, but is 7",
        "node 1 (sum): there is no attribute dim here (known: axes, keepdims); did you mean axes?",
        "node 1 (sum): there is no attribute keepdim here (known: axes, keepdims); did you mean keepdims?",
        "node 1 (sum): attribute axes must be a list of 64-bit integers, but is 1; write [1]",
    ]


def test_operand_counts_are_checked_only_for_needed_nodes() -> None:
    statements = [X, node("relu", 0, 0), node("neg", 0)]
    Compiler(Limits()).forward(Program(registry(), statements), {0: F})
    assert faults(statements, {0: F}, outputs=[1]) == ["node 1 (relu): takes 1 operand (x), but got 2"]


# ---------------------------------------------------------------- types and feeds


def test_type_faults_of_independent_nodes_are_reported() -> None:
    statements = [X, node("input"), node("add", 0, 1), node("neg", 2), node("softplus", 3), node("sum", 0, axes=[4])]
    assert faults([*statements, node("relu", 0, 1), node("mul", 4, 5)], {0: M, 1: F}, outputs=[6, 7]) == [
        "node 2 (add): shapes [2, 3] and [2] do not broadcast: their extents at axis -1 differ and none of them is 1",
        "node 5 (sum): axes must be between -2 and 1, but is 4",
        "node 6 (relu): takes 1 operand (x), but got 2",
    ]


def test_consequences_of_a_fault_are_not_reported() -> None:
    statements = [X, node("sum", 0, axes=[4]), node("add", 1, 0), node("matmul", 2, 0), node("neg", 3)]
    assert len(faults(statements, {0: F})) == 1


def test_missing_and_unexpected_feeds_are_reported_together() -> None:
    statements = [X, node("input", name="data"), node("input", dtype="int64"), node("sum", 0, axes=[4])]
    statements += [node("cat", 0, 1, 2, 3), node("input")]
    assert faults(statements, {9: F, 0: F, 2: F, 5: F}, outputs=[4]) == [
        "feeds name node 9, but the graph has 6 nodes",
        "node 1 (input “data”): the result needs a feed for this node, but there is none",
        "node 2 (input): is declared as int64, but is fed float64",
        "node 3 (sum): axes must be between -1 and 0, but is 4",
    ]


def test_all_non_float_nodes_of_wrt_are_reported() -> None:
    statements = [node("parameter", name="w"), node("parameter"), X, node("cat", 0, 1, 2), node("mean", 3)]
    with pytest.raises(EngineError) as caught:
        Compiler(Limits()).gradients(Program(registry(), statements), {0: INT, 1: INT, 2: F})
    assert [caught.value.node, *(other.node for other in caught.value.others)] == [0, 1]


# ---------------------------------------------------------------- limits of the search


def test_at_most_ten_faults_are_reported() -> None:
    statements = [X, *(node("sum", 0, colour=1) for _ in range(30))]
    assert [f"node {i} " in message for i, message in enumerate(faults(statements), 1)] == [True] * MOST_FAULTS
    statements = [X, *(node("sum", 0, axes=[4]) for _ in range(30))]
    statements.append(node("cat", *range(1, 31)))
    assert len(faults(statements, {0: F})) == MOST_FAULTS
    many = {f"colour{i}": 1 for i in range(1000)}
    assert len(faults([X, node("sum", 0, **many), node("sum", 0, **many)])) == MOST_FAULTS


def test_search_stops_after_ten_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    monkeypatch.setattr("engine.ir.program.bind", lambda *_: checks.append(1) or {})
    monkeypatch.setattr("engine.ir.program.check_references", refuse)
    assert len(faults([Statement(registry().ops["sum"], (0,))] * 100)) == MOST_FAULTS
    assert len(checks) < MOST_FAULTS


def refuse(*_: object) -> None:
    raise BadReference("no")


@pytest.mark.parametrize("limits", [Limits(bytes=100), Limits(nodes=5)], ids=["bytes", "nodes"])
def test_exceeded_budget_ends_the_search(limits: Limits) -> None:
    large = node("full", shape=[1000]), node("exp", 0)
    statements = [X, *large, node("sum", 0, axes=[9]), node("cat", 0, 1, 2, 3)]
    first = faults(statements, {0: F}, limits)
    assert len(first) == 1 if limits.bytes == 100 else "axes must be between" in first[0]
    with pytest.raises(OverBudget):
        Compiler(Limits(bytes=100)).forward(Program(registry(), statements), {0: F})
    before = [X, node("sum", 0, axes=[9]), *large, node("sum", 0, axes=[8]), node("cat", 0, 1, 2, 3, 4)]
    assert faults(before, {0: F}, Limits(bytes=100)) == ["node 1 (sum): axes must be between -1 and 0, but is 9"]


def test_oversized_attribute_ends_the_search() -> None:
    endless = node("full", shape=[1] * 200)
    with pytest.raises(OverBudget):
        Program(registry(), [endless, node("neg", 5)])
    assert len(faults([node("neg", 5), endless, node("neg", 7)])) == 1


@pytest.mark.parametrize("spent", [OverBudget("bytes"), TooManyNodes("nodes"), DeadlineExceeded("time")])
def test_budget_error_is_raised_alone(spent: EngineError) -> None:
    collected = Faults()
    with pytest.raises(type(spent)) as caught, collected:
        raise spent
    assert caught.value is spent
    assert not caught.value.others


def test_other_exceptions_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), Faults():
        raise ZeroDivisionError
    Faults().report()


def test_location_applies_only_within_its_block() -> None:
    collected = Faults()
    with collected.at(3, "sum", "total"):
        pass
    with collected:
        raise BadReference("outside")
    with collected.at(4, "neg"):
        raise BadReference("inside")
    with pytest.raises(BadReference, match=r"^outside$") as caught:
        collected.report()
    assert [other.detail for other in caught.value.others] == ["node 4 (neg): inside"]


class Body:
    """A large object that the caller holds during the call, such as a request body."""


@pytest.mark.parametrize("count", [1, 3, 30])
@pytest.mark.parametrize("wrong", [node("sum", 0, axes=[4]), node("sum", 0, colour=1)], ids=["types", "form"])
def test_error_does_not_hold_objects_of_the_caller(wrong: Statement, count: int) -> None:
    held: list[weakref.ref[Body]] = []

    def compile_wrong_graph() -> None:
        body = Body()
        held.append(weakref.ref(body))
        program = Program(registry(), [X, *[wrong] * count, node("cat", *range(1, count + 1))])
        Compiler(Limits()).forward(program, {0: F})

    gc.disable()
    try:
        with suppress(EngineError):
            compile_wrong_graph()
        assert held[0]() is None
    finally:
        gc.enable()


def test_passed_deadline_is_raised_before_faults() -> None:
    with pytest.raises(DeadlineExceeded):
        Compiler(Limits()).forward(Program(registry(), [X, node("sum", 0, axes=[9])]), {0: F}, deadline=Deadline(-1.0))


def test_search_for_more_faults_ends_at_the_deadline() -> None:
    """A missing feed is found at once; the rest of the graph may be long."""
    checks: list[int] = []

    class Past(Deadline):
        def check(self) -> None:
            checks.append(1)
            super().check()

    statements = [X, *[node("exp", i) for i in range(3000)], node("input"), node("add", 3000, 3001)]
    program = Program(registry(), statements)
    with pytest.raises(MissingFeed):
        Compiler(Limits()).forward(program, {0: F}, deadline=Past(1.0, start=time.monotonic() - 2.0))
    assert len(checks) == 1
