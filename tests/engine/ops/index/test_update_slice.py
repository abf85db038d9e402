"""`update_slice` as two copies if no cast is needed, and in a batch."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.index.slice import UpdateSlice
from tests.engine.looping import batch, written

X, UPDATE = np.arange(12.0).reshape(3, 4), np.full((2, 1), 9.0)


def test_two_copies_give_the_result() -> None:
    out = np.empty((3, 4))
    copies = UpdateSlice().as_copies(np, (X, UPDATE), out, {"starts": (1, 2)})
    assert copies is not None
    for target, source in copies:
        target[...] = source
    expected = X.copy()
    expected[1:3, 2:3] = 9
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtypes", [("float32", "float64", "float64"), ("float64", "float32", "float64")])
def test_casts_have_no_copies(dtypes: tuple[str, str, str]) -> None:
    x, update, out = (a.astype(dtype) for a, dtype in zip((X, UPDATE, X), dtypes, strict=True))
    assert UpdateSlice().as_copies(np, (x, update), out, {"starts": (1, 2)}) is None


def test_each_example_is_updated_at_the_same_starts() -> None:
    x, update = np.stack([X, -X]), np.stack([UPDATE, 2 * UPDATE])
    actual = batch(
        written(lambda g, x, update: [g.update_slice(x, update, starts=[0, -1])], x, update),
        [0, 1],
        differentiated=False,
    )
    expected = x.copy()
    expected[:, 0:2, 3:] = update
    np.testing.assert_array_equal(actual[0], expected)
