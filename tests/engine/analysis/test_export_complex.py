"""Exported gradients with respect to complex nodes: the statements compute the engine's gradients."""

from __future__ import annotations

import numpy as np
import pytest

from engine import LATEST, Compiler, Gradients, Program, TensorType, registry
from engine.analysis.export import export_gradients
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.autodiff.calls.asking import Net, kind

Z, W = np.array([[1 + 2j, 3 - 1j], [0.5j, -2]]), np.array([0.5, -0.25])


@pytest.mark.parametrize("op", ["tanh", "sqrt", "inv", "cholesky", "conj", "angle", "cumprod", "prod"])
def test_exported_program_matches_the_gradients(op: str) -> None:
    net = Net()
    z, w = net.leaf(Z + 4 * np.eye(2)), net.leaf(W)
    output = net.add(op, z, **({"axis": 1} if op == "cumprod" else {}))
    net.add("sum", net.add("square", net.add("abs", net.add("mul", output, w))))
    call = Gradients.of_program(net.program)
    exported = export_gradients(net.program, net.types, call, LIMITS)
    program = Program(registry(), exported.statements, opset=LATEST, functions=exported.functions)
    nodes = [node for _, node in exported.gradients]
    types = {i: TensorType.of(a) for i, a in net.feeds.items()}
    plan = Compiler(LIMITS).forward(program, types, nodes).plan
    actual = EXECUTOR.run(plan, {feed: net.feeds[feed] for feed in plan.feeds})
    expected = kind(net.ask(call), "gradients")
    for (leaf, _), gradient in zip(exported.gradients, actual, strict=True):
        assert gradient.dtype == net.feeds[leaf].dtype
        np.testing.assert_allclose(gradient, expected[(leaf,)], rtol=1e-11, atol=1e-13)
