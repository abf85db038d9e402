"""Bodies as functions of a program: each once, behind those that it runs, with what it takes declared."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import Builder, Function, Limits, Program, Statement, TensorType, registry
from engine.analysis.export import StatementWriter
from engine.ir.program import Body
from engine.ir.tensor_type import FLOAT64

OPS = registry().ops
PAIR = TensorType((2,), FLOAT64)


def once(body: Body | None) -> Body:
    """A body that gives twice its pair; where there is another body, that of it, twice."""
    builder = Builder(registry())
    x = builder.leaf(PAIR, 0)
    if body is None:
        return Body(builder.graph([x * 2.0]), [PAIR])
    loop = builder.emit(OPS["scan"], [x], looped(body))
    return Body(builder.graph([loop.output(0)]), [PAIR])


def looped(body: Body) -> dict[str, Any]:
    return {"body": body, "carries": 1, "sequences": 0, "length": 3, "reverse": False}


def written(bodies: list[Body]) -> tuple[list[Function], list[Statement]]:
    """A program of one function and an input, and loops of these bodies written behind it."""
    own = Function(registry(), [Statement(OPS["input"])], [0])
    program = Program(registry(), [Statement(OPS["input"])], opset=2, functions=[own])
    builder = Builder(registry())
    leaf = builder.leaf(PAIR, 0)
    outputs = [builder.emit(OPS["scan"], [leaf], looped(body)).output(0) for body in bodies]
    writer, statements = StatementWriter(program, Limits()), list(program.statements)
    where = writer.append(statements, builder.graph(outputs), {0: 0})
    assert [statements[i].op.name for i in where] == ["get_output"] * len(bodies)
    assert writer.functions[0] is own
    return writer.functions, statements


def test_a_body_is_written_once() -> None:
    functions, statements = written([once(None), once(None)])
    assert len(functions) == 2
    assert [s.attrs["body"] for s in statements if s.op.name == "scan"] == [1, 1]


def test_what_a_body_runs_comes_before_it() -> None:
    functions, statements = written([once(once(once(None)))])
    assert len(functions) == 4
    named = [[s.attrs["body"] for s in f.statements if s.op.name == "scan"] for f in functions]
    assert named == [[], [], [1], [2]]
    assert [s.attrs["body"] for s in statements if s.op.name == "scan"] == [3]
    assert functions[3].depth == 3


def test_parameters_are_declared_and_attributes_at_their_default_left_out() -> None:
    (_, function), (_, loop, _) = written([once(None)])
    assert function.statements[0] == Statement(OPS["input"], (), {"dtype": "float64", "shape": [2]})
    assert loop == Statement(OPS["scan"], (0,), {"body": 1, "carries": 1, "length": 3})


def test_an_infinity_is_a_constant_that_is_spread() -> None:
    builder = Builder(registry())
    x = builder.leaf(PAIR, 0)
    masked = Body(builder.graph([x + builder.full((2,), -np.inf, FLOAT64)]), [PAIR])
    (_, function), _ = written([masked])
    assert [s.op.name for s in function.statements] == ["input", "constant", "broadcast_to", "add"]
