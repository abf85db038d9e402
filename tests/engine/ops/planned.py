"""The plan of one op: helper for tests of cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine import LATEST, Compiler, Limits, Program, Statement, TensorType, registry
from engine.compiler.plan import Plan


def plan_of(op: str, *shapes: Sequence[int], wrt: Sequence[int] | None = None, **attrs: Any) -> Plan:
    """Return the plan of an op on float64 inputs, or of its sum's gradient with respect to `wrt`; nothing runs."""
    leaves = [Statement(registry().ops["input"]) for _ in shapes]
    used = Statement(registry().get(op), tuple(range(len(shapes))), attrs)
    program = Program(registry(), [*leaves, used, Statement(registry().ops["sum"], (len(shapes),))], opset=LATEST)
    types = {i: TensorType(tuple(shape), np.dtype("float64")) for i, shape in enumerate(shapes)}
    compiler = Compiler(Limits())
    if wrt is not None:
        return compiler.gradients(program, types, wrt=wrt).plan
    return compiler.forward(program, types, [len(shapes)]).plan
