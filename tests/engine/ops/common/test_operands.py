"""Shape errors of operands: the operand, the expected shape and the actual one."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.errors import ShapeMismatch
from engine.ir.tensor_type import TensorType
from engine.ops.common.numerics import one_per_axis, require_axes, require_extent, require_shape, with_extent

X = TensorType((2, 3), np.dtype("float64"))


def test_require_shape() -> None:
    require_shape(X, (2, 3), 1, "b", "that of a")
    with pytest.raises(ShapeMismatch) as caught:
        require_shape(X, (3, 2), 1, "b", "that of a")
    error = caught.value
    assert error.detail == "operand 1 (b) must have shape [3, 2], that of a, but has shape [2, 3]"
    assert (error.operand, error.expected, error.got) == (1, "shape [3, 2], that of a", "[2, 3]")


def test_require_extent() -> None:
    require_extent(X, -1, 3, 0, "x", "one for each feature")
    with pytest.raises(ShapeMismatch, match=r"operand 0 \(x\) must have extent 4 on axis -1 \(one for each feature\)"):
        require_extent(X, -1, 4, 0, "x", "one for each feature")


def test_require_axes() -> None:
    require_axes(X, 2, "to transpose")
    with pytest.raises(ShapeMismatch, match=r"needs at least 3 axes to transpose, but the operand has 2") as caught:
        require_axes(X, 3, "to transpose")
    assert (caught.value.operand, caught.value.expected, caught.value.got) == (0, "at least 3 axes", "2 axes")


def test_one_per_axis_and_with_extent() -> None:
    assert [one_per_axis(n) for n in (1, 2)] == ["1 entry, one for each axis", "2 entries, one for each axis"]
    assert [with_extent((2, 3, 4), axis, 9) for axis in range(3)] == [(9, 3, 4), (2, 9, 4), (2, 3, 9)]
