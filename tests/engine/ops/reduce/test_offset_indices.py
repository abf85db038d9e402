"""Indices of several examples as those of one: each in its own range."""

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
    made = offset_indices(x, 100, 1, axis)
    (public,) = made.node.op.written_out(x, axis=axis, extent=100, operand=1)
    index = np.array([[0, 99, 5], [7, 0, 99]], dtype)
    found, said = run_graph(builder.graph([made, public]), {0: index})
    offsets = 100 * np.indices((2, 3))[axis]
    np.testing.assert_array_equal(found, index + offsets)
    np.testing.assert_array_equal(said, found)
    assert found.dtype == said.dtype == "int64"


@pytest.mark.parametrize("entry", [-1, 100])
def test_what_is_of_another_example_is_refused(entry: int) -> None:
    builder = Builder(registry())
    made = offset_indices(builder.leaf(TensorType((2, 1), np.dtype("int64")), 0), 100, 1)
    with pytest.raises(IndexOutOfRange, match=r"operand 1 .* in \[0, 100\)"):
        run_graph(builder.graph([made]), {0: np.array([[3], [entry]])})


def test_the_examples_come_first_unless_an_axis_is_said() -> None:
    """Also where none of them has anything to index: the first operand of its node."""
    builder = Builder(registry())
    x, nothing = (builder.leaf(TensorType(shape, np.dtype("int8")), shape) for shape in ((2, 3), (2, 0)))
    found, empty = run_graph(
        builder.graph([offset_indices(x, 10, 0), offset_indices(nothing, 0, 0)]),
        {(2, 3): np.zeros((2, 3), "int8"), (2, 0): np.zeros((2, 0), "int8")},
    )
    assert found.tolist() == [[0, 0, 0], [10, 10, 10]]
    assert empty.shape == (2, 0)


@pytest.mark.parametrize("axis", [0, 1])
def test_batched_the_examples_lie_along_the_next_axis(axis: int) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 3), np.dtype("int64")), "x")
    index = np.arange(24).reshape(4, 2, 3)
    (found,) = run_graph(vmap(builder.graph([offset_indices(x, 100, 0, axis)]), {"x"}, 4, NO_LIMITS), {"x": index})
    np.testing.assert_array_equal(found, index + 100 * np.indices((4, 2, 3))[axis + 1])
