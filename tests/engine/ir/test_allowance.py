"""Optimisation stays within its request: FLOPs of folding count, and every pass checks the deadline."""

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
    Graph,
    Limits,
    OverBudget,
    Program,
    Statement,
    TensorType,
    Values,
    analyse,
    registry,
)
from engine.compiler.compiler import CompileRequest
from engine.compiler.plan import make_plan
from engine.ir.passes import PASSES, Allowance, Pass, fold, optimise
from tests.engine.compiler.test_compiler import Clock

FLOAT64 = np.dtype("float64")


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def products(count: int) -> list[Statement]:
    """Products of whole numbers, each of 2 · 16 · 200 · 16 FLOPs, few enough to be folded; and a feed."""
    rng = np.random.default_rng(0)
    nodes, sums = [line("parameter")], []
    for _ in range(count):
        i = len(nodes)
        nodes += [
            line("constant", value=rng.integers(0, 9, (16, 200))),
            line("constant", value=rng.integers(0, 9, (200, 16))),
            line("matmul", i, i + 1),
            line("cast", i + 2, dtype="float64"),
        ]
        sums.append(i + 3)
    for i in sums:
        nodes.append(line("add", 0 if i == sums[0] else len(nodes) - 1, i))
    return [*nodes, line("sum", len(nodes) - 1)]


TYPES = {0: TensorType((16, 16), FLOAT64)}
ONE = 2 * 16 * 200 * 16


def test_over_budget_error_counts_folded_products() -> None:
    nodes = products(30)
    program = Program(registry(), nodes)
    whole = make_plan(optimise(graph_of(nodes), off=("fold",)), Limits()).flops
    assert whole > 30 * ONE
    for flops in (ONE // 2, 30 * ONE):
        with pytest.raises(OverBudget) as caught:
            Compiler(Limits(flops=flops)).forward(program, TYPES)
        assert caught.value.detail == f"this needs {whole} FLOPs, and the limit is {flops} FLOPs"


def test_analysis_over_the_budget_counts_unfolded_flops() -> None:
    nodes = products(30)
    program = Program(registry(), nodes)
    analysis = analyse(CompileRequest(program, TYPES, Values.of_program(program), Limits(flops=30 * ONE)))
    assert not analysis.within
    assert analysis.forward_flops == make_plan(optimise(graph_of(nodes), off=("fold",)), Limits()).flops
    assert analyse(CompileRequest(program, TYPES, Values.of_program(program), Limits())).forward_flops < ONE


def test_flop_budget_covers_folded_and_remaining_nodes() -> None:
    program = Program(registry(), products(30))
    whole = Compiler(Limits()).forward(program, TYPES).plan.flops
    assert whole < ONE, "folded"
    for flops in (whole, 15 * ONE, 30 * ONE + whole - 1):
        with pytest.raises(OverBudget):
            Compiler(Limits(flops=flops)).forward(program, TYPES)


def graph_of(nodes: list[Statement]) -> Graph:
    builder, values = Program(registry(), nodes).build(TYPES, [len(nodes) - 1])
    return builder.graph([values[len(nodes) - 1]])


def test_fold_leaves_a_graph_over_the_budget_unchanged() -> None:
    graph = graph_of(products(3))
    assert fold(graph, Allowance(flops=3 * ONE)) is graph
    assert len([n for n in fold(graph, Allowance(flops=4 * ONE)).nodes if n.op.name == "matmul"]) == 0


def long_chains(count: int) -> Graph:
    """A chain on a feed, and one on a constant."""
    builder = Builder(registry())
    x, c = builder.leaf(TYPES[0], 0), builder.constant(np.array([0.25, 0.5]))
    for _ in range(count):
        x, c = x.sin(), c.sin()
    return builder.graph([x, c])


@pytest.mark.parametrize("apply", {f.__name__: f for f in PASSES}.values(), ids=lambda f: f.__name__)
def test_every_pass_checks_the_deadline(apply: Pass, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = long_chains(1500)
    monkeypatch.setattr(time, "monotonic", Clock())
    with pytest.raises(DeadlineExceeded):
        apply(graph, Allowance(deadline=Deadline(8)))


@pytest.mark.parametrize("seconds", [2, 15, 30, 45])
def test_planning_checks_the_deadline_throughout(seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances with each read: at 3,000 nodes, storage, costs, packing and steps read it 13 times each."""
    graph = long_chains(1500)
    monkeypatch.setattr(time, "monotonic", Clock())
    with pytest.raises(DeadlineExceeded):
        make_plan(graph, Limits(), Deadline(seconds))
