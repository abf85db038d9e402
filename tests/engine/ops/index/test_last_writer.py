"""The last writer of each position: a loop is the reference, for every implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.ir.errors import IndexOutOfRange
from engine.ir.run_context import NO_LIMITS, RunContext
from engine.ops.index import index as module
from engine.ops.index.index import last_writer
from tests.contract.cases import run_graph


@pytest.mark.parametrize("count", [0, 1, 500])
def test_last_write_wins(count: int) -> None:
    index = np.random.default_rng(0).integers(0, 40, count)
    expected = np.full(50, -1)
    for i, place in enumerate(index):
        expected[place] = i
    builder = Builder(registry())
    x = builder.leaf(TensorType.of(index), 0)
    writer = last_writer(x, 50)
    (decomposed,) = writer.node.op.written_out(x, extent=50)
    for actual in run_graph(builder.graph([writer, decomposed]), {0: index}):
        np.testing.assert_array_equal(actual, expected)
    general = np.full(50, -1)
    module._write_largest.general(RunContext(np), index, general)
    np.testing.assert_array_equal(general, expected)


def batched(index: np.ndarray[Any, Any], extent: int) -> np.ndarray[Any, Any]:
    """The last writers of each row."""
    builder = Builder(registry())
    x = builder.leaf(TensorType(index.shape[1:], index.dtype), "x")
    graph = vmap(builder.graph([last_writer(x, extent)]), {"x"}, len(index), NO_LIMITS)
    (result,) = run_graph(graph, {"x": index})
    return result


def test_each_example_numbers_its_own_entries() -> None:
    actual = batched(np.array([[1, 1, 0], [2, 0, 2]]), 4)
    assert actual.tolist() == [[2, 1, -1, -1], [1, -1, 2, -1]]
    assert actual.dtype == "int64"


def test_empty_index_and_extent() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((0,), np.dtype("int64")), 0)
    (actual,) = run_graph(builder.graph([last_writer(x, 0)]), {0: np.zeros(0, "int64")})
    assert actual.shape == (0,)


@pytest.mark.parametrize("entry", [-1, 4])
def test_out_of_range_index_names_operand_0(entry: int) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((2,), np.dtype("int64")), 0)
    with pytest.raises(IndexOutOfRange, match=r"operand 0 .* in \[0, 4\)"):
        run_graph(builder.graph([last_writer(x, 4)]), {0: np.array([0, entry])})
    with pytest.raises(IndexOutOfRange, match=r"operand 0 .* in \[0, 4\)"):
        batched(np.array([[0, 0], [0, entry]]), 4)
