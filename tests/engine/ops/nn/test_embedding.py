"""Embedding: the padding row without a gradient, tables of any rank, and indices from the end."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import error, grads

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("features", [(), (2,), (7, 3)], ids=str)
@pytest.mark.parametrize("row", [4, -1, -5])
def test_padding_row_is_read_but_has_no_gradient(row: int, features: tuple[int, ...]) -> None:
    weight, indices = RNG.normal(size=(5, *features)), np.array([[4, 0, 4], [1, 0, 3]])
    g = RNG.normal(size=(2, 3, *features))
    expected = np.zeros_like(weight)
    np.add.at(expected, indices, g)
    expected[row] = 0
    value, (gradient,) = grads("embedding", weight, indices, cotangent=g, padding_idx=row)
    np.testing.assert_array_equal(value, weight[indices])
    np.testing.assert_allclose(gradient, expected, 1e-15)


@pytest.mark.parametrize("row", [5, -6])
def test_padding_row_outside_the_table_is_refused(row: int) -> None:
    refused = error("embedding", np.zeros((5, 2)), np.array([0]), padding_idx=row)
    assert (refused.code, refused.expected, refused.got) == ("bad_attribute", "in [-5, 5)", str(row))


@pytest.mark.parametrize("index", [5, -6])
def test_out_of_range_index_is_refused(index: int) -> None:
    refused = error("embedding", np.zeros((5, 2)), np.array([0, index]), from_end=True)
    assert refused.operand == 1
    assert "all must lie in [-5, 5)" in refused.detail
