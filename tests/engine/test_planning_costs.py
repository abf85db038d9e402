"""Planning stays linear in time and small in memory, whatever graph it is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from engine import Compiler, Limits, Program, Statement, TensorType, open_executor, registry
from engine.passes.fold import MOST_BYTES_IN_ALL
from engine.planning.plan import Plan

FLOAT64 = np.dtype("float64")
CPU = open_executor("cpu")


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def planned(nodes: list[Statement], shape: tuple[int, ...] = ()) -> Plan:
    """The plan of the last node; the first is fed."""
    return Compiler(Limits()).forward(Program(registry(), nodes), {0: TensorType(shape, FLOAT64)}).plan


def steps_of(job: Callable[[], object]) -> int:
    """Lines of Python that a job runs."""
    count, before = 0, sys.gettrace()

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        job()
    finally:
        sys.settrace(before)
    return count


def hidden(length: int) -> list[Statement]:
    """A number behind a chain of views, which as many nodes multiply by."""
    nodes = [line("parameter"), line("full", shape=[1])]
    for _ in range(length):
        nodes.append(line("broadcast_to", len(nodes) - 1, shape=[1, 1]))
        nodes.append(line("reshape", len(nodes) - 1, shape=[1]))
    end = len(nodes) - 1
    products = range(end + 1, end + 1 + length)
    return [*nodes, *(line("mul", 0, end) for _ in products), line("cat", *products)]


def test_twice_the_graph_is_about_twice_the_work() -> None:
    planned(hidden(20), (1,))  # fills the caches that later runs find
    once, twice = (steps_of(lambda n=n: planned(hidden(n), (1,))) for n in (200, 400))
    assert twice < 2.5 * once


def test_folded_values_are_small_together() -> None:
    chain = [line("parameter"), line("constant", value=np.linspace(0, 1, 8192))]
    chain += [line("sin", i) for i in range(1, 1000)]
    plan = planned([*chain, line("add", 0, len(chain) - 1)])
    held = sum(a.nbytes for step in plan.steps for a in step.attrs.values() if isinstance(a, np.ndarray))
    assert held <= MOST_BYTES_IN_ALL
    expected = np.linspace(0, 1, 8192)
    for _ in range(999):
        expected = np.sin(expected)
    np.testing.assert_allclose(CPU.run(plan, {0: np.array(2.0)})[0], expected + 2, rtol=1e-12)
