"""Errors of boxes at computed starts, and the operand that each names."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.run import error

X = np.zeros((3, 4))


def test_invalid_starts_name_the_last_operand() -> None:
    for starts, code in ((np.zeros(2), "dtype_mismatch"), (np.zeros(3, int), "shape_mismatch")):
        refused = error("slice_at", X, starts, sizes=[1, 1])
        assert (refused.code, refused.operand) == (code, 1)
        refused = error("update_slice_at", X, np.zeros((1, 1)), starts)
        assert (refused.code, refused.operand) == (code, 2)


def test_updates_must_fit_in_x() -> None:
    for shape in ((4, 1), (1,), (1, 5)):
        refused = error("update_slice_at", X, np.zeros(shape), np.zeros(2, int))
        assert (refused.code, refused.operand) == ("shape_mismatch", 1)
