"""Node limit: gradients of exactly the limit are accepted, and the first node over it is refused when it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, Program, Statement, TensorType, registry
from engine.autodiff.calls import HVP, JVP, VJP, Call, Gradients, Hessian, Jacobian
from engine.autodiff.vjp import expand_grad
from engine.compiler.compiler import CompileRequest, write_call
from engine.ir.errors import DeadlineExceeded, TooManyNodes
from engine.ir.run_context import Deadline

F64 = np.dtype("float64")


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def nested(depth: int) -> Program:
    """Nest gradients of growing functions: each level has about three times the nodes of the one below."""
    lines = [line("parameter"), line("tanh", 0)]
    for _ in range(depth):
        count = len(lines)
        lines += [line("grad", count - 1, 0), line("sin", count), line("mul", count + 1, count + 1)]
    return Program(registry(), [*lines, line("sum", len(lines) - 1)])


def chain(length: int) -> Program:
    return Program(registry(), [line("parameter"), *(line("sin", i) for i in range(length)), line("sum", length)])


def calls(program: Program, shape: tuple[int, ...]) -> list[Call]:
    """List every call that differentiates a program."""
    given, scalar = ((0, TensorType(shape, F64)),), ((len(program.statements) - 1, TensorType((), F64)),)
    return [
        Gradients.of_program(program),
        VJP.of_program(program, scalar),
        JVP.of_program(program, given),
        HVP.along(program, given),
        Hessian.of_program(program),
        Jacobian.of_program(program),
    ]


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("program", [nested(2), chain(30)], ids=["nested", "chain"])
def test_node_limit_is_exact(program: Program, which: int) -> None:
    types = {0: TensorType((3,), F64)}
    call = calls(program, (3,))[which]
    total = len(write_call(CompileRequest(program, types, call, Limits())).graph.nodes)
    assert len(write_call(CompileRequest(program, types, call, Limits(nodes=total))).graph.nodes) == total
    with pytest.raises(TooManyNodes):
        write_call(CompileRequest(program, types, call, Limits(nodes=total - 1)))


@pytest.mark.parametrize("depth", [1, 2])
def test_node_limit_of_expanded_gradients_is_exact(depth: int) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), F64), "x")
    y = x.tanh()
    for _ in range(depth):
        y = y.grad(x).sin()
    graph = builder.graph([y])
    total = len(expand_grad(graph).nodes)
    assert len(expand_grad(graph, Limits(nodes=total)).nodes) == total
    with pytest.raises(TooManyNodes):
        expand_grad(graph, Limits(nodes=total - 1))


@pytest.mark.parametrize(
    ("program", "call"), [(nested(12), Gradients), (nested(40), Gradients), (chain(4_000), Hessian)]
)
def test_refusal_appends_no_more_nodes_than_the_limit(
    program: Program, call: type[Gradients], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time and memory of a refusal are bounded, however large the gradients would be."""
    admit = Limits.admit_nodes
    monkeypatch.setattr(Limits, "admit_nodes", lambda limits, count: counts.append(count) or admit(limits, count))
    counts = list[int]()
    with pytest.raises(TooManyNodes) as caught:
        write_call(CompileRequest(program, {0: TensorType((), F64)}, call.of_program(program), Limits(nodes=20_000)))
    assert str(caught.value) == "the graph has more than 20000 nodes, including those of its gradients"
    assert max(counts) == 20_001


def test_writing_gradients_stops_at_the_deadline() -> None:
    program = nested(12)
    with pytest.raises(DeadlineExceeded):
        write_call(
            CompileRequest(program, {0: TensorType((), F64)}, Gradients.of_program(program), Limits(), Deadline(0.0))
        )
