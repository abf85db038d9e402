"""Slices along one axis, and zeros between entries."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.index.slice import along, bounds, dilate, slice_axis
from tests.engine.ops.values import come_to, written

X = np.arange(1.0, 25.0).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_slice_axis_matches_numpy(axis: int) -> None:
    stop = X.shape[axis]
    np.testing.assert_array_equal(come_to(lambda x: slice_axis(x, axis, 1, stop), X), X[along(axis, 1, stop)])


def test_bounds() -> None:
    assert bounds([2, 0, 3]) == [(0, 2), (2, 2), (2, 5)]
    assert bounds([]) == []


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_dilate_inserts_zeros(axis: int, step: int) -> None:
    expected = np.zeros([(n - 1) * step + 1 if i == axis else n for i, n in enumerate(X.shape)])
    expected[(*[slice(None)] * axis, slice(None, None, step))] = X
    (value,), (actual,) = written(lambda x: dilate(x, axis, step), X)
    np.testing.assert_array_equal(actual, expected)
    assert value.node.is_leaf == (step == 1)
