"""Planning is linear in time and small in memory for every graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Call, Compiler, Hessian, Jacobian, Limits, Program, Statement, TensorType, open_executor, registry
from engine.compiler.compiler import CompileRequest, plan_call, write_call
from engine.compiler.plan import Plan
from engine.ir.passes import MOST_BYTES_IN_ALL
from tests.engine.compiler.steps import steps_of

pytestmark = pytest.mark.slow

FLOAT64 = np.dtype("float64")
CPU = open_executor("cpu")


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def planned(nodes: list[Statement], shape: tuple[int, ...] = ()) -> Plan:
    """The plan of the last node; the first is fed."""
    return Compiler(Limits()).forward(Program(registry(), nodes), {0: TensorType(shape, FLOAT64)}).plan


def hidden(length: int) -> list[Statement]:
    """A number behind a chain of views, and as many nodes that multiply by it."""
    nodes = [line("parameter"), line("full", shape=[1])]
    for _ in range(length):
        nodes.append(line("broadcast_to", len(nodes) - 1, shape=[1, 1]))
        nodes.append(line("reshape", len(nodes) - 1, shape=[1]))
    end = len(nodes) - 1
    products = range(end + 1, end + 1 + length)
    return [*nodes, *(line("mul", 0, end) for _ in products), line("cat", *products)]


def test_planning_is_linear_in_the_graph() -> None:
    planned(hidden(20), (1,))  # fills the caches for the runs below
    once, twice = (steps_of(lambda n=n: planned(hidden(n), (1,))) for n in (200, 400))
    assert twice < 2.5 * once


# ---------------------------------------------------------------- Jacobians and Hessians of many small nodes


def all_at_once(count: int) -> list[Statement]:
    """log Σ exp of numbers: every block of the Hessian is full."""
    return [*scalars(count), line("stack", *range(count)), line("logsumexp", count)]


def neighbours(count: int) -> list[Statement]:
    """Σ sin(xₖ xₖ₊₁): three blocks in each row of the Hessian are full."""
    pairs = [line("mul", k, (k + 1) % count) for k in range(count)]
    terms = [line("sin", count + k) for k in range(count)]
    return [*scalars(count), *pairs, *terms, line("stack", *range(2 * count, 3 * count)), line("sum", 3 * count)]


def beside(count: int, length: int) -> list[Statement]:
    """exp(xₖ) c and their sum, with c from a chain of this length that no xₖ reaches."""
    path = [line("input"), *(line("sin", count + k) for k in range(length))]
    end = count + length
    growths = [line("exp", k) for k in range(count)]
    terms = [line("mul", end + 1 + k, end) for k in range(count)]
    last = range(end + 1 + count, end + 1 + 2 * count)
    return [*scalars(count), *path, *growths, *terms, line("stack", *last), line("sum", last.stop)]


def tall(count: int) -> list[Statement]:
    """More results than numbers: the Jacobian is computed column by column."""
    return [*scalars(count), line("stack", *range(count), *range(count)), line("sin", count)]


def scalars(count: int) -> list[Statement]:
    return [line("parameter") for _ in range(count)]


def request(kind: type[Hessian | Jacobian], nodes: list[Statement]) -> tuple[Program, dict[int, TensorType], Call]:
    program = Program(registry(), nodes)
    return program, {i: TensorType((), FLOAT64) for i in program.leaves}, kind.of_program(program)


def node_count(kind: type[Hessian | Jacobian], nodes: list[Statement]) -> int:
    return len(write_call(CompileRequest(*request(kind, nodes), Limits())).graph.nodes)


def test_full_hessian_block_takes_two_nodes() -> None:
    """The derivative of one gradient, and its reshape to the block; the other nodes are linear in the count."""
    least, some, most = (node_count(Hessian, all_at_once(n)) for n in (20, 40, 60))
    assert (most - some) - (some - least) == 2 * (60**2 - 2 * 40**2 + 20**2)


@pytest.mark.parametrize(("kind", "graph"), [(Hessian, neighbours), (Jacobian, tall)])
def test_node_count_is_linear_in_a_sparse_derivative(kind: type[Hessian | Jacobian], graph: Any) -> None:
    assert node_count(kind, graph(80)) < 2.2 * node_count(kind, graph(40))


def test_hessian_work_is_quadratic_in_the_parameters() -> None:
    plan_call(CompileRequest(*request(Hessian, all_at_once(40)), Limits()))
    once, twice = (
        steps_of(lambda n=n: plan_call(CompileRequest(*request(Hessian, all_at_once(n)), Limits()))) for n in (20, 40)
    )
    assert twice < 4.4 * once


@pytest.mark.parametrize("outputs", ["of their sum", "of each"])
def test_nodes_off_the_path_are_visited_once_for_all_rows(outputs: str) -> None:
    def work(count: int, length: int) -> int:
        program, types, call = request(Hessian, beside(count, length))
        if outputs == "of each":
            last = 2 * count + length + 1
            call = Jacobian.of_program(program, outputs=range(last, last + count))
        return steps_of(lambda: write_call(CompileRequest(program, types, call, Limits())))

    work(20, 1)
    few, many = (work(count, 200) - work(count, 100) for count in (10, 20))
    assert many < 1.1 * few


def test_folded_values_are_bounded_in_total() -> None:
    chain = [line("parameter"), line("constant", value=np.linspace(0, 1, 8192))]
    chain += [line("sin", i) for i in range(1, 1000)]
    plan = planned([*chain, line("add", 0, len(chain) - 1)])
    held = sum(a.nbytes for step in plan.steps for a in step.attrs.values() if isinstance(a, np.ndarray))
    assert held <= MOST_BYTES_IN_ALL
    expected = np.linspace(0, 1, 8192)
    for _ in range(999):
        expected = np.sin(expected)
    np.testing.assert_allclose(CPU.run(plan, {0: np.array(2.0)})[0], expected + 2, rtol=1e-12)
