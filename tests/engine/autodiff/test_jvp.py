"""Forward mode as nodes: derivatives along tangents, with no placeholder cotangents left."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.jvp import Dummy, check_linear, jvp
from engine.compiler.plan import make_plan
from engine.ir.errors import NotDifferentiable
from engine.ir.graph import Origin
from engine.ir.passes import dce
from engine.ir.run_context import NO_LIMITS
from engine.runtime.numpy_backend import NumPyExecutor

VECTOR = TensorType((3,), np.dtype("float64"))


def test_derivative_along_a_tangent() -> None:
    builder = Builder(registry(), NO_LIMITS)
    x, other, tangent = (builder.leaf(VECTOR, name) for name in ("x", "other", "tangent"))
    derivative, missing = jvp(builder, [x.sin() * x, other.exp()], [(x, tangent)])
    assert derivative is not None
    assert missing is None
    graph = dce(builder.graph([derivative]))
    check_linear(graph)
    x_value, direction = np.array([0.5, -1.0, 2.0]), np.array([1.0, 3.0, -2.0])
    (computed,) = NumPyExecutor().run(make_plan(graph, NO_LIMITS), {"x": x_value, "tangent": direction})
    np.testing.assert_allclose(computed, (np.cos(x_value) * x_value + np.sin(x_value)) * direction, 1e-14)


def test_remaining_cotangent_names_its_node() -> None:
    builder = Builder(registry(), NO_LIMITS)
    dummy = builder.leaf(VECTOR, Dummy(0, 0))
    builder.origin = Origin(4, "call")
    graph = builder.graph([dummy.tanh()])
    with pytest.raises(NotDifferentiable, match=r"node 4 \(call\).*linear in its cotangents") as caught:
        check_linear(graph)
    assert caught.value.node == 4
