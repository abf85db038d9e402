"""What an operand of matrices is computed in, and how much room that takes."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.graph.errors import ShapeMismatch
from engine.oplib.decomposition import chunk_workspace, matrix_type


@pytest.mark.parametrize(("dtype", "wanted"), [("int8", "float64"), ("bool", "float64"), ("float16", "float16")])
def test_whole_numbers_are_computed_in_float64(dtype: str, wanted: str) -> None:
    assert matrix_type(TensorType((2, 3), np.dtype(dtype))) == TensorType((2, 3), np.dtype(wanted))


@pytest.mark.parametrize("shape", [(), (3,)])
def test_what_holds_no_matrices_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeMismatch, match=r"operand 1 \(b\) must hold matrices on its last two axes, but has shape"):
        matrix_type(TensorType(shape, np.dtype(float)), 1, "b")


def test_room_is_for_a_piece_and_once_for_what_one_matrix_takes() -> None:
    large = TensorType((4, 300, 300), np.dtype(float))
    assert chunk_workspace(large, 10, 5) == 8 * (10 + 5)
    few = TensorType((4, 2, 2), np.dtype(float))
    assert chunk_workspace(few, 10, 5) == 8 * (4 * 10 + 5)
    assert chunk_workspace(TensorType((4, 0, 2), np.dtype(float)), 10, 5) == 0
