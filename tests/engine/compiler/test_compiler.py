"""Budgets, deadlines and the plan cache."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from engine import (
    Builder,
    Compiler,
    Deadline,
    DeadlineExceeded,
    EngineError,
    Limits,
    OverBudget,
    Program,
    Statement,
    TensorType,
    open_executor,
    registry,
)
from engine.autodiff.vjp import vjp
from engine.ir.graph import Origin

X = np.linspace(0.1, 0.9, 4)
TYPES = {0: TensorType.of(X)}


def node(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().get(op), operands, attrs)


def chain(length: int) -> list[Statement]:
    return [node("parameter"), *(node("sin", i) for i in range(length)), node("sum", length)]


def refused(limits: Limits, statements: list[Statement]) -> EngineError:
    with pytest.raises(OverBudget) as caught:
        Compiler(limits).gradients(Program(registry(), statements, limits), TYPES)
    return caught.value


def test_node_limit_applies_to_the_graph_and_its_gradient() -> None:
    message = "the graph has more than 10 nodes, including those of its gradients"
    assert refused(Limits(nodes=10), chain(20)).detail == message
    grown = refused(Limits(nodes=10), chain(5))
    assert grown.detail.endswith(message)
    assert grown.code == "too_many_nodes"


def test_nested_gradients_stop_at_the_node_limit() -> None:
    statements = [node("parameter"), node("tanh", 0)]
    statements += [node("grad", i + 1, 0) for i in range(40)]
    assert refused(Limits(nodes=5000), [*statements, node("sum", len(statements) - 1)]).code == "too_many_nodes"


def test_limits_are_checked_before_allocation() -> None:
    huge = [node("parameter"), node("full", shape=[1 << 40]), node("add", 0, 1), node("sum", 2)]
    assert refused(Limits(), huge).detail.startswith("node 1 (full): this needs 8796093022208 bytes, and the limit is")
    busy = [node("parameter"), *(node("sin", i) for i in range(50)), node("sum", 50)]
    assert refused(Limits(flops=100), busy).detail.startswith("this needs ")
    deep = [node("parameter"), node("reshape", 0, shape=[4, *[1] * 32]), node("sum", 1)]
    wide = refused(Limits(), deep)
    assert wide.detail == "node 1 (reshape): a tensor may have at most 32 axes, but this one has 33"
    many = [node("parameter"), *(node("sin", 0) for _ in range(50))]
    total = node("add", 1, 2)
    fan = [*many, total, *(node("add", 51 + i, 3 + i) for i in range(48)), node("sum", 99)]
    assert refused(Limits(bytes=100), fan).code == "over_budget"


def test_zero_extent_does_not_hide_a_huge_one() -> None:
    limits = Limits()
    with pytest.raises(OverBudget):
        limits.admit_type(TensorType((0, 1 << 62), np.dtype("float64")))


def test_plan_cache_evicts_the_least_recently_used() -> None:
    compiler = Compiler(Limits(), capacity=2)
    programs = [Program(registry(), chain(n)) for n in (1, 2, 3)]
    assert not compiler.gradients(programs[0], TYPES).cached
    assert compiler.gradients(programs[0], TYPES).cached
    assert compiler.gradients(Program(registry(), chain(1)), TYPES).cached
    assert not compiler.gradients(programs[0], TYPES, outputs=[1]).cached
    assert compiler.gradients(programs[0], TYPES).cached
    compiler.gradients(programs[1], TYPES)
    compiler.gradients(programs[2], TYPES)
    assert not compiler.gradients(programs[0], TYPES).cached


def test_plan_cache_is_bounded_in_bytes() -> None:
    statements = [node("parameter"), node("constant", value=np.ones(4)), node("add", 0, 1), node("sum", 2)]
    compiler = Compiler(Limits(), bytes=100)
    compiler.gradients(Program(registry(), statements), TYPES)
    assert not compiler.gradients(Program(registry(), statements), TYPES).cached
    roomy = Compiler(Limits(), bytes=1 << 20)
    roomy.gradients(Program(registry(), statements), TYPES)
    assert roomy.gradients(Program(registry(), statements), TYPES).cached


def test_plans_are_cached_per_feed_types() -> None:
    compiler = Compiler(Limits())
    program = Program(registry(), chain(1))
    compiler.gradients(program, TYPES)
    assert not compiler.gradients(program, {0: TensorType((4,), np.dtype("float32"))}).cached
    assert not compiler.gradients(program, {0: TensorType((5,), np.dtype("float64"))}).cached


class Clock:
    """A monotonic clock that advances by one second with every read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_deadline_is_checked_while_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", Clock())
    with pytest.raises(DeadlineExceeded) as caught:
        Compiler(Limits()).gradients(Program(registry(), chain(5000)), TYPES, deadline=Deadline(3))
    assert str(caught.value) == "the request did not finish within its timeout of 3 s"
    assert caught.value.node is None


@pytest.mark.slow
def test_deadline_is_checked_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Compiler(Limits()).gradients(Program(registry(), chain(2000)), TYPES).plan
    monkeypatch.setattr(time, "monotonic", Clock())
    for run in (open_executor("cpu").run, open_executor("cpu").interpret):
        with pytest.raises(DeadlineExceeded):
            run(plan, {0: X}, Deadline(5))
        assert len(run(plan, {0: X}, Deadline(50_000))) == 2


def test_missing_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.cuda.cupy_backend.is_available", lambda: False)
    assert open_executor("auto").device == "cpu"
    with pytest.raises(RuntimeError, match="no GPU can be used"):
        open_executor("cuda")
    with pytest.raises(ValueError, match="device must be auto, cpu or cuda"):
        open_executor("tpu")


def test_backward_nodes_have_the_origin_of_their_op() -> None:
    builder = Builder(registry())
    x = builder.leaf(TYPES[0], 0)
    builder.origin = Origin(7, "Sin")
    y = x.sin()
    builder.origin = None
    before = len(builder.nodes)
    vjp(builder, [(y, y)], [x])
    assert {node.origin for node in builder.nodes[before:]} == {Origin(7, "Sin", backward=True)}
    assert builder.origin is None
