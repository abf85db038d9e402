"""Bodies rewritten for kernels take no more memory than was planned."""

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
    """The body of a scan over maxima along an axis of [rows, 40]: as planned, and rewritten for kernels."""

    def body(g: Writer, x: int, c: int) -> list[int]:
        return [g.add(c, g.sum(g.max(g.mul(x, c), axes=[axis])))]

    case = written(lambda g, x, c: g.scan(x, c, body=body, carries=1, length=3), np.ones((rows, 40)), np.array(0.5))
    compiled = Compiler(Limits()).compile(case.program, case.types, Values.of_program(case.program, case.results))
    graph = graph_of(compiled.plan, registry())
    plans = [
        node.op.plans[0]
        for version in (graph, with_compiled_bodies(graph))
        for node in version.nodes
        if isinstance(node.op, RunsPlans)
    ]
    return plans[0], plans[1]


@pytest.mark.parametrize("rows", [20, 5000])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_are_copied_if_memory_allows(axis: int, rows: int) -> None:
    planned, compiled = bodies(rows, axis)
    assert compiled.peak_bytes <= max(planned.peak_bytes, 1 << 16)
    remaining = {step.op.name for step in compiled.steps if not isinstance(step.op, Fused)}
    assert ("max" in remaining) == (axis == 0 and rows == 5000)
