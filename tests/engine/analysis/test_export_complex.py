"""A gradient by complex nodes as a program: its statements compute what the engine does."""

from __future__ import annotations

import numpy as np
import pytest

from engine import LATEST, Compiler, Gradients, Program, TensorType, registry
from engine.analysis.export import export_gradients
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.autodiff.calls.asking import Net, kind

Z, W = np.array([[1 + 2j, 3 - 1j], [0.5j, -2]]), np.array([0.5, -0.25])


@pytest.mark.parametrize("op", ["tanh", "sqrt", "inv", "cholesky", "conj", "angle", "cumprod", "prod"])
def test_the_program_is_the_gradient(op: str) -> None:
    net = Net()
    z, w = net.leaf(Z + 4 * np.eye(2)), net.leaf(W)
    made = net.add(op, z, **({"axis": 1} if op == "cumprod" else {}))
    net.add("sum", net.add("square", net.add("abs", net.add("mul", made, w))))
    call = Gradients.of_program(net.program)
    found = export_gradients(net.program, net.types, call, LIMITS)
    program = Program(registry(), found.statements, opset=LATEST, functions=found.functions)
    nodes = [node for _, node in found.gradients]
    types = {i: TensorType.of(a) for i, a in net.feeds.items()}
    plan = Compiler(LIMITS).forward(program, types, nodes).plan
    written = EXECUTOR.run(plan, {feed: net.feeds[feed] for feed in plan.feeds})
    asked = kind(net.ask(call), "gradients")
    for (of, _), gradient in zip(found.gradients, written, strict=True):
        assert gradient.dtype == net.feeds[of].dtype
        np.testing.assert_allclose(gradient, asked[(of,)], rtol=1e-11, atol=1e-13)
