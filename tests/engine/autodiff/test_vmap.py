"""Batching, as nodes: what depends on no mapped leaf is computed once, and has an axis where that is wanted."""

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
def test_an_output_that_is_the_same_for_all_examples(wanted: list[bool] | None, shape: tuple[int, ...]) -> None:
    builder = Builder(registry(), NO_LIMITS)
    x, same = builder.leaf(VECTOR, "x"), builder.leaf(VECTOR, "same")
    graph = vmap(builder.graph([x.exp() + same, same.sin()]), {"x"}, 2, mapped_outputs=wanted)
    assert sum(node.op.name == "sin" for node in graph.nodes) == 1
    at, fixed = np.arange(6.0).reshape(2, 3), np.array([0.5, 1.0, -2.0])
    mapped, alone = NumPyExecutor().run(make_plan(graph, NO_LIMITS), {"x": at, "same": fixed})
    np.testing.assert_allclose(mapped, np.exp(at) + fixed, 1e-15)
    expected = np.broadcast_to(np.sin(fixed), shape)
    np.testing.assert_allclose(alone, expected, 2 * np.finfo(float).eps if COMPILED else 0.0, strict=True)
