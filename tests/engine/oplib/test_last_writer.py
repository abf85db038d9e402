"""Who writes last: a loop is the reference, on every device's way."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.graph.run_context import RunContext
from engine.oplib import last_writer as module
from engine.oplib.last_writer import last_writer
from tests.contract.cases import run_graph


@pytest.mark.parametrize("count", [0, 1, 500])
def test_the_last_in_order_stands(count: int) -> None:
    index = np.random.default_rng(0).integers(0, 40, count)
    expected = np.full(50, -1)
    for i, place in enumerate(index):
        expected[place] = i
    builder = Builder(registry())
    x = builder.leaf(TensorType.of(index), 0)
    made = last_writer(x, 50)
    (public,) = made.node.op.written_out(x, extent=50)
    for found in run_graph(builder.graph([made, public]), {0: index}):
        np.testing.assert_array_equal(found, expected)
    there = np.full(50, -1)
    module._write_largest.general(RunContext(np), index, there)
    np.testing.assert_array_equal(there, expected)
