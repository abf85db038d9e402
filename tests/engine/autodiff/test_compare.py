"""Integer constants that bodies compare with floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler
from engine.autodiff.bodies import tidy
from engine.ir.graph import Node
from tests.engine.looping import Writer, gradients, values, written

INEXACT = 2**53 + 1


def compared(bound: Any, dtype: str, x: Any) -> list[Node]:
    """Return the operands of a comparison of x with a number in a body."""

    def step(g: Writer, x: int) -> list[int]:
        return [g.where(g.less(x, g.number(bound, dtype)), g.mul_scalar(x, scalar=2.0), x)]

    loop = written(lambda g, x: g.scan(x, body=step, carries=1, length=3), x)
    plan = Compiler(loop.program.limits).forward(loop.program, loop.types, loop.results).plan
    (scan,) = [step for step in plan.steps if step.op.name == "scan"]
    graph = tidy(scan.attrs["body"]).graph
    (less,) = [node for node in graph.nodes if node.op.name == "less"]
    return [graph.nodes[i] for i in less.operands]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "bool"])
@pytest.mark.parametrize("of", ["float64", "float32", "float16"])
def test_constant_takes_the_dtype_it_is_compared_with(dtype: str, of: str) -> None:
    x, bound = compared(1, dtype, np.array([0.25, 3.0], of))
    assert x.type.dtype == of
    assert bound.type.dtype == (of if dtype != "bool" else "bool")
    assert not bound.type.shape


@pytest.mark.parametrize(("bound", "of"), [(INEXACT, "float64"), (2**24 + 1, "float32"), (70_000, "float16")])
def test_constant_that_would_be_rounded_keeps_its_dtype(bound: int, of: str) -> None:
    assert compared(bound, "int64", np.array([0.25], of))[1].type.dtype == np.int64


def test_arrays_and_integer_operands_keep_their_dtype() -> None:
    assert compared([1, 2], "int64", np.array([0.25, 3.0]))[1].type.dtype == np.int64
    whole = written(lambda g, x: [g.less(x, g.number(1, "int64"))], np.array([0, 2]), floats=())
    assert [str(node.type) for node in whole.program.build(whole.types, whole.results)[0].nodes][1] == "int64[]"


def test_loop_ends_at_the_same_step_as_with_floats() -> None:
    def looped(bound: Any, dtype: str) -> Any:
        def condition(g: Writer, x: int) -> list[int]:
            return [g.less(x, g.number(bound, dtype))]

        def step(g: Writer, x: int) -> list[int]:
            return [g.mul_scalar(x, scalar=1.5)]

        return lambda g, x: g.while_(x, condition=condition, body=step, carries=1, max_steps=50)

    actual, expected = (
        values(looped(bound, dtype), np.array(1.0)) for bound, dtype in ((100, "int64"), (100.0, "float64"))
    )
    assert [x.tolist() for x in actual] == [x.tolist() for x in expected] == [1.5**12, 12, True]
    (slope,) = gradients(looped(100, "int64"), np.array(1.0), floats=[0])
    assert slope == pytest.approx(np.cos(1.5**12 + 0.3) * 1.5**12)
