"""Errors of the op `grad`, and the operand that each names. Its results are tested with the ops it differentiates."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.run import error


def test_cotangent_of_another_shape_is_refused() -> None:
    refused = error("grad", np.zeros(2), np.zeros(3), np.zeros(3))
    assert (refused.operand, refused.expected, refused.got) == (2, "[2]", "[3]")


def test_integers_are_not_differentiated() -> None:
    assert error("grad", np.zeros(2, int), np.zeros(3)).operand == 0
    assert error("grad", np.zeros(2), np.zeros(3, int)).operand == 1


def test_complex_result_needs_a_cotangent() -> None:
    refused = error("grad", np.zeros(2, complex), np.zeros(3))
    assert (refused.code, refused.operand) == ("dtype_mismatch", 0)
