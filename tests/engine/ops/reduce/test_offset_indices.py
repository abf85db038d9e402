"""Indices of a batch as indices of one array: each example has its own range."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.ir.errors import IndexOutOfRange
from engine.ir.run_context import NO_LIMITS
from engine.ops.reduce.segments import offset_indices
from tests.contract.cases import run_graph


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_each_example_has_its_own_range(dtype: str, axis: int) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 3), np.dtype(dtype)), 0)
    shifted = offset_indices(x, 100, 1, axis)
    (decomposition,) = shifted.node.op.written_out(x, axis=axis, extent=100, operand=1)
    index = np.array([[0, 99, 5], [7, 0, 99]], dtype)
    actual, decomposed = run_graph(builder.graph([shifted, decomposition]), {0: index})
    offsets = 100 * np.indices((2, 3))[axis]
    np.testing.assert_array_equal(actual, index + offsets)
    np.testing.assert_array_equal(decomposed, actual)
    assert actual.dtype == decomposed.dtype == "int64"


@pytest.mark.parametrize("entry", [-1, 100])
def test_out_of_range_index_is_refused(entry: int) -> None:
    builder = Builder(registry())
    shifted = offset_indices(builder.leaf(TensorType((2, 1), np.dtype("int64")), 0), 100, 1)
    with pytest.raises(IndexOutOfRange, match=r"operand 1 .* in \[0, 100\)"):
        run_graph(builder.graph([shifted]), {0: np.array([[3], [entry]])})


def test_axis_of_examples_defaults_to_0() -> None:
    """Examples without indices are included."""
    builder = Builder(registry())
    x, no_indices = (builder.leaf(TensorType(shape, np.dtype("int8")), shape) for shape in ((2, 3), (2, 0)))
    actual, empty = run_graph(
        builder.graph([offset_indices(x, 10, 0), offset_indices(no_indices, 0, 0)]),
        {(2, 3): np.zeros((2, 3), "int8"), (2, 0): np.zeros((2, 0), "int8")},
    )
    assert actual.tolist() == [[0, 0, 0], [10, 10, 10]]
    assert empty.shape == (2, 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_batching_shifts_the_axis_of_examples(axis: int) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 3), np.dtype("int64")), "x")
    index = np.arange(24).reshape(4, 2, 3)
    (actual,) = run_graph(vmap(builder.graph([offset_indices(x, 100, 0, axis)]), {"x"}, 4, NO_LIMITS), {"x": index})
    np.testing.assert_array_equal(actual, index + 100 * np.indices((4, 2, 3))[axis + 1])
