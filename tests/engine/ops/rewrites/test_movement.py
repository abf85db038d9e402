"""Transposes that move behind elementwise ops, and transposes that must stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, TensorType, Value, open_executor, registry
from engine.compiler.plan import make_plan
from engine.ir.passes import dce, simplify
from engine.ir.run_context import Limits

RNG = np.random.default_rng(3)
Formula = Callable[[Value, Value], Value]

#: formulas of a and b [2, 3, 4] (or [2, 2, 2]), and the number of transposes that are left
FORMULAS: dict[str, tuple[Formula, int]] = {
    "one operand, turned back": (lambda a, b: a.transpose().exp().transpose(), 0),
    "two turned alike": (lambda a, b: (a.transpose() * b.transpose()).transpose(), 0),
    "two turned apart": (lambda a, b: a.transpose(axes=(1, 2, 0)) * b.transpose(axes=(0, 2, 1)), 2),
    "one that is not turned": (lambda a, b: a.transpose() * b.reshape(shape=(2, 4, 3)), 1),
    "with one number": (lambda a, b: (b.sum() - a.transpose()).transpose(), 0),
    "with a mask": (lambda a, b: (a.transpose() > b.transpose()).where(a.transpose(), 0.0).transpose(), 0),
    "with a row that is repeated": (lambda a, b: a.transpose() * b.sum(axes=(0, 2)), 1),
    "rows that stay rows": (lambda a, b: a.transpose(axes=(1, 0, 2)).exp(), 1),
    "a sum of all": (lambda a, b: a.transpose().square().sum(), 0),
    "a sum that keeps its axes": (lambda a, b: a.transpose().sum(axes=(1, 2), keepdims=True), 0),
    "a sum that leaves axes in order": (lambda a, b: a.transpose().sum(axes=(1,)), 0),
    "a sum that leaves axes turned": (lambda a, b: a.transpose().sum(axes=(0,)), 1),
}


@pytest.mark.parametrize("case", FORMULAS)
def test_values_stay_and_transposes_are_removed(case: str) -> None:
    formula, left = FORMULAS[case]
    shape = (2, 2, 2) if case == "two turned apart" else (2, 3, 4)
    builder, arrays = Builder(registry()), [RNG.normal(size=shape) for _ in "ab"]
    a, b = (builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays))
    graph = builder.graph([formula(a, b)])
    short = simplify(graph)
    expected, actual = (
        open_executor("cpu").run(make_plan(g, Limits()), dict(enumerate(arrays)))[0] for g in (graph, short)
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    assert sum(node.op.name == "transpose" for node in dce(short).nodes) == left


def test_output_is_written_in_its_final_layout() -> None:
    """A transpose afterwards would take a copy."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 3), np.dtype("float64")), 0)
    short = simplify(builder.graph([x.transpose().exp()]))
    assert short.nodes[short.outputs[0]].op.name == "exp"
