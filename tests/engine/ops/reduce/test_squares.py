"""Norms of rows near either end of their dtype's range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import run


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 7, 4096, 4097, 10_000])
def test_row_norms_at_any_scale(length: int, dtype: str) -> None:
    """Rows are independent: squares that overflow in one row, or underflow in another, do not affect a third."""
    ends = np.finfo(dtype)
    sizes = np.array([1, 0, ends.max / 100, ends.tiny * 100, ends.max**0.5, ends.tiny**0.5, np.nan, np.inf], dtype)
    x = np.random.default_rng(5).uniform(-1, 1, (len(sizes), length)).astype(dtype)
    x[:, 0] = 1
    expected = np.sqrt(np.sum(x.astype("float64") ** 2, axis=1)).astype(dtype) * sizes
    x[:6] *= sizes[:6, None]
    x[6:, 0] = sizes[6:]
    for array, axis in ((x, 1), (np.ascontiguousarray(x.T), 0), (np.repeat(x, 2, axis=1)[:, ::2], 1)):
        np.testing.assert_allclose(run("norm", array, axes=[axis]), expected, 30 * ends.eps)
    cube = np.ascontiguousarray(x[:6].reshape(6, 1, length).transpose(1, 2, 0))
    np.testing.assert_allclose(run("norm", cube, axes=[0, 1]), expected[:6], 30 * ends.eps)


def test_long_rows_are_as_accurate_as_short_ones() -> None:
    """With equal squares, each sum rounds to the same side."""
    count, each = 1 << 18, np.float32(0.3)
    actual = run("norm", np.full((2, count), each), axes=[1])
    np.testing.assert_allclose(actual, 2**9 * float(each), 20 * np.finfo("float32").eps)
