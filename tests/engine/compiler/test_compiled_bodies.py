"""Bodies for kernels take no more memory than they were planned for, in whatever way they are written."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Compiler, Limits, Values, registry
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.control_flow import RunsPlans
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan, graph_of
from tests.engine.looping import Writer, written


def bodies(rows: int, axis: int) -> tuple[Plan, Plan]:
    """The body of a scan that looks for maxima along an axis of [rows, 40]: as planned, and for kernels."""

    def body(g: Writer, x: int, c: int) -> list[int]:
        return [g.add(c, g.sum(g.max(g.mul(x, c), axes=[axis])))]

    asked = written(lambda g, x, c: g.scan(x, c, body=body, carries=1, length=3), np.ones((rows, 40)), np.array(0.5))
    compiled = Compiler(Limits()).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results))
    graph = graph_of(compiled.plan, registry())
    found = [
        node.op.plans[0]
        for each in (graph, with_compiled_bodies(graph))
        for node in each.nodes
        if isinstance(node.op, RunsPlans)
    ]
    return found[0], found[1]


@pytest.mark.parametrize("rows", [20, 5000])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_copied_where_there_is_memory_for_it(axis: int, rows: int) -> None:
    planned, made = bodies(rows, axis)
    assert made.peak_bytes <= max(planned.peak_bytes, 1 << 16)
    left = {step.op.name for step in made.steps if not isinstance(step.op, Fused)}
    assert ("max" in left) == (axis == 0 and rows == 5000)
