"""Norms of rows, each of which may be near an end of its dtype's range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import run


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 7, 4096, 4097, 10_000])
def test_norms_of_rows_of_any_size(length: int, dtype: str) -> None:
    """Each by itself: squares that overflow in one row, and vanish in another, do not show in a third."""
    ends = np.finfo(dtype)
    sizes = np.array([1, 0, ends.max / 100, ends.tiny * 100, ends.max**0.5, ends.tiny**0.5, np.nan, np.inf], dtype)
    x = np.random.default_rng(5).uniform(-1, 1, (len(sizes), length)).astype(dtype)
    x[:, 0] = 1
    wanted = np.sqrt(np.sum(x.astype("float64") ** 2, axis=1)).astype(dtype) * sizes
    x[:6] *= sizes[:6, None]
    x[6:, 0] = sizes[6:]
    for array, axis in ((x, 1), (np.ascontiguousarray(x.T), 0), (np.repeat(x, 2, axis=1)[:, ::2], 1)):
        np.testing.assert_allclose(run("norm", array, axes=[axis]), wanted, 30 * ends.eps)
    cube = np.ascontiguousarray(x[:6].reshape(6, 1, length).transpose(1, 2, 0))
    np.testing.assert_allclose(run("norm", cube, axes=[0, 1]), wanted[:6], 30 * ends.eps)


def test_long_rows_are_as_accurate_as_short_ones() -> None:
    """Of equal squares, each sum rounds to the same side."""
    count, each = 1 << 18, np.float32(0.3)
    found = run("norm", np.full((2, count), each), axes=[1])
    np.testing.assert_allclose(found, 2**9 * float(each), 20 * np.finfo("float32").eps)
