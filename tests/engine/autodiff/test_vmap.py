"""Batching as nodes: values that are not mapped are computed once, with a batch axis on request."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.run_context import NO_LIMITS
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.printers import COMPILED

VECTOR = TensorType((3,), np.dtype("float64"))


@pytest.mark.parametrize(("wanted", "shape"), [(None, (2, 3)), ([True, True], (2, 3)), ([True, False], (3,))])
def test_unmapped_output_has_a_batch_axis_on_request(wanted: list[bool] | None, shape: tuple[int, ...]) -> None:
    builder = Builder(registry(), NO_LIMITS)
    x, same = builder.leaf(VECTOR, "x"), builder.leaf(VECTOR, "same")
    graph = vmap(builder.graph([x.exp() + same, same.sin()]), {"x"}, 2, mapped_outputs=wanted)
    assert sum(node.op.name == "sin" for node in graph.nodes) == 1
    x_value, fixed = np.arange(6.0).reshape(2, 3), np.array([0.5, 1.0, -2.0])
    mapped, alone = NumPyExecutor().run(make_plan(graph, NO_LIMITS), {"x": x_value, "same": fixed})
    np.testing.assert_allclose(mapped, np.exp(x_value) + fixed, 1e-15)
    expected = np.broadcast_to(np.sin(fixed), shape)
    np.testing.assert_allclose(alone, expected, 2 * np.finfo(float).eps if COMPILED else 0.0, strict=True)
