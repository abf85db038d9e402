"""Errors of `take_along`: each names the index, its second operand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import error


@pytest.mark.parametrize("from_end", [False, True])
def test_errors_name_the_index(from_end: bool) -> None:
    for x, index, code in (
        (np.zeros(3), np.array([3]), "index_out_of_range"),
        (np.zeros(3), np.zeros(1), "dtype_mismatch"),
        (np.zeros((3, 2)), np.zeros((1, 3), int), "shape_mismatch"),
        (np.zeros((3, 2)), np.zeros(1, int), "shape_mismatch"),
    ):
        refused = error("take_along", x, index, from_end=from_end)
        assert (refused.code, refused.operand) == (code, 1)
