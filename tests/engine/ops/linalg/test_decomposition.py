"""Compute dtype and workspace of operands that hold matrices."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.ir.errors import ShapeMismatch
from engine.ops.linalg.matrices import Decomposition, chunk_workspace, matrix_type
from tests.contract.cases import run_graph


@pytest.mark.parametrize(("dtype", "wanted"), [("int8", "float64"), ("bool", "float64"), ("float16", "float16")])
def test_integers_are_computed_in_float64(dtype: str, wanted: str) -> None:
    assert matrix_type(TensorType((2, 3), np.dtype(dtype))) == TensorType((2, 3), np.dtype(wanted))


@pytest.mark.parametrize("shape", [(), (3,)])
def test_operand_without_matrix_axes_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeMismatch, match=r"operand 1 \(b\) must hold matrices on its last two axes, but has shape"):
        matrix_type(TensorType(shape, np.dtype(float)), 1, "b")
    with pytest.raises(ShapeMismatch, match=r"operand 0 \(x\) must hold") as caught:
        matrix_type(TensorType(shape, np.dtype(float)))
    assert caught.value.operand == 0


def test_vmap_adds_a_batch_axis() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((2, 2), np.dtype(float)), "x")
    assert isinstance(x.det().node.op, Decomposition)
    many = np.array([[[3.0, 0.0], [0.0, 2.0]], [[0.0, 5.0], [4.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]])
    (actual,) = run_graph(vmap(builder.graph([x.det()]), {"x"}, 3), {"x": many})
    np.testing.assert_allclose(actual, [6, -20, 0], 1e-15)


def test_workspace_is_one_chunk_plus_work_of_one_matrix() -> None:
    large = TensorType((4, 300, 300), np.dtype(float))
    assert chunk_workspace(large, 10, 5) == 8 * (10 + 5)
    few = TensorType((4, 2, 2), np.dtype(float))
    assert chunk_workspace(few, 10, 5) == 8 * (4 * 10 + 5)
    assert chunk_workspace(TensorType((4, 0, 2), np.dtype(float)), 10, 5) == 0
