"""Bodies as functions of a program: each written once, after the functions it runs, with declared inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import Builder, Function, Limits, Program, Statement, TensorType, registry
from engine.analysis.export import StatementWriter
from engine.ir.program import Body
from engine.ir.tensor_type import FLOAT64

OPS = registry().ops
PAIR = TensorType((2,), FLOAT64)


def doubling_body(body: Body | None) -> Body:
    """Return a body that doubles its pair, or a body that loops over another body."""
    builder = Builder(registry())
    x = builder.leaf(PAIR, 0)
    if body is None:
        return Body(builder.graph([x * 2.0]), [PAIR])
    loop = builder.emit(OPS["scan"], [x], scan_attrs(body))
    return Body(builder.graph([loop.output(0)]), [PAIR])


def scan_attrs(body: Body) -> dict[str, Any]:
    return {"body": body, "carries": 1, "sequences": 0, "length": 3, "reverse": False}


def write_scans(bodies: list[Body]) -> tuple[list[Function], list[Statement]]:
    """Write scans of these bodies behind a program of one function and one input."""
    existing = Function(registry(), [Statement(OPS["input"])], [0])
    program = Program(registry(), [Statement(OPS["input"])], opset=2, functions=[existing])
    builder = Builder(registry())
    leaf = builder.leaf(PAIR, 0)
    outputs = [builder.emit(OPS["scan"], [leaf], scan_attrs(body)).output(0) for body in bodies]
    writer, statements = StatementWriter(program, Limits()), list(program.statements)
    nodes = writer.append(statements, builder.graph(outputs), {0: 0})
    assert [statements[i].op.name for i in nodes] == ["get_output"] * len(bodies)
    assert writer.functions[0] is existing
    return writer.functions, statements


def test_body_is_written_once() -> None:
    functions, statements = write_scans([doubling_body(None), doubling_body(None)])
    assert len(functions) == 2
    assert [s.attrs["body"] for s in statements if s.op.name == "scan"] == [1, 1]


def test_functions_precede_the_bodies_that_run_them() -> None:
    functions, statements = write_scans([doubling_body(doubling_body(doubling_body(None)))])
    assert len(functions) == 4
    named = [[s.attrs["body"] for s in f.statements if s.op.name == "scan"] for f in functions]
    assert named == [[], [], [1], [2]]
    assert [s.attrs["body"] for s in statements if s.op.name == "scan"] == [3]
    assert functions[3].depth == 3


def test_inputs_are_declared_and_default_attributes_omitted() -> None:
    (_, function), (_, loop, _) = write_scans([doubling_body(None)])
    assert function.statements[0] == Statement(OPS["input"], (), {"dtype": "float64", "shape": [2]})
    assert loop == Statement(OPS["scan"], (0,), {"body": 1, "carries": 1, "length": 3})


def test_infinite_fill_becomes_a_broadcast_constant() -> None:
    builder = Builder(registry())
    x = builder.leaf(PAIR, 0)
    masked = Body(builder.graph([x + builder.full((2,), -np.inf, FLOAT64)]), [PAIR])
    (_, function), _ = write_scans([masked])
    assert [s.op.name for s in function.statements] == ["input", "constant", "broadcast_to", "add"]
