"""A replaced box as two copies, where nothing is cast, and of each example of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.index.slice import UpdateSlice
from tests.engine.looping import batch, written

X, UPDATE = np.arange(12.0).reshape(3, 4), np.full((2, 1), 9.0)


def test_two_copies_are_the_whole() -> None:
    out = np.empty((3, 4))
    copies = UpdateSlice().as_copies(np, (X, UPDATE), out, {"starts": (1, 2)})
    assert copies is not None
    for to, of in copies:
        to[...] = of
    wanted = X.copy()
    wanted[1:3, 2:3] = 9
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("dtypes", [("float32", "float64", "float64"), ("float64", "float32", "float64")])
def test_what_is_cast_is_no_copy(dtypes: tuple[str, str, str]) -> None:
    x, update, out = (a.astype(dtype) for a, dtype in zip((X, UPDATE, X), dtypes, strict=True))
    assert UpdateSlice().as_copies(np, (x, update), out, {"starts": (1, 2)}) is None


def test_each_example_is_replaced_at_the_same_place() -> None:
    x, update = np.stack([X, -X]), np.stack([UPDATE, 2 * UPDATE])
    found = batch(
        written(lambda g, x, update: [g.update_slice(x, update, starts=[0, -1])], x, update),
        [0, 1],
        differentiated=False,
    )
    wanted = x.copy()
    wanted[:, 0:2, 3:] = update
    np.testing.assert_array_equal(found[0], wanted)
