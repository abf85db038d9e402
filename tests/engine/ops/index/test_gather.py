"""Edge cases of `gather` and `scatter_add`: indices from the end, and invalid indices."""

from __future__ import annotations

import numpy as np
import pytest

from engine import registry
from tests.engine.ops.run import error, run

X = np.arange(12.0).reshape(4, 3)
INDEX = np.array([[-1, 0], [2, -3], [1, 1]])


def test_indices_from_the_end_on_axis_1() -> None:
    np.testing.assert_array_equal(
        run("gather", X, INDEX, axis=1, from_end=True), np.take_along_axis(X[:3], INDEX % 3, 1)
    )
    added = X.copy()
    np.add.at(added, (np.arange(3)[:, None], INDEX), 10.0)
    actual = run("scatter_add", X, INDEX, np.full((3, 2), 10.0), axis=1, from_end=True)
    np.testing.assert_array_equal(actual, added)


@pytest.mark.parametrize("from_end", [False, True])
def test_out_of_range_index_names_operand_1(from_end: bool) -> None:
    bad = np.array([[4, 0, 0]])
    refused = error("gather", X, bad, from_end=from_end), error("scatter_add", X, bad, X[:1], from_end=from_end)
    assert [(r.code, r.operand) for r in refused] == [("index_out_of_range", 1)] * 2


def test_index_on_an_array_of_one_column() -> None:
    column = X[:, :1]
    np.testing.assert_array_equal(run("gather", column, np.array([[3], [0]])), [[9.0], [0.0]])
    actual = run("scatter_add", column, np.array([[3], [0]]), np.array([[1.0], [2.0]]))
    np.testing.assert_array_equal(actual, [[2.0], [3.0], [6.0], [10.0]])


def test_mismatched_indices_are_refused() -> None:
    """The error names the operand, before the axis of the index is read."""
    x, index, updates = np.zeros((3, 2)), np.zeros(2, "int64"), np.zeros(2)
    refused = error("scatter_add", x, index, updates, axis=1)
    assert (refused.code, refused.operand) == ("shape_mismatch", 1)
    assert refused.detail.endswith("must have rank 2 and at most shape [3, 2] except on axis 1, but has shape [2]")
    refused = error("scatter_add", np.zeros(2), np.zeros(2), updates)
    assert (refused.code, refused.operand) == ("dtype_mismatch", 1)


def test_long_index_list() -> None:
    listed = [i % 7 for i in range(100)]
    np.testing.assert_array_equal(run("gather", np.arange(7.0), indices=listed), listed)
    assert registry().ops["gather"].attrs["indices"].max_length == 1_000_000
    assert error("gather", np.zeros(1), indices=[0] * (10**6 + 1)).code == "over_budget"
