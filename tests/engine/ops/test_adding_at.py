"""Adding at indices gives what NumPy's add.at gives, to the bit, however it is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.oplib.indices import add_elements, add_rows

RNG = np.random.default_rng(5)
#: dtypes of what is added, and of the sums
SUMS = {
    "float32": "float32",
    "float64": "float64",
    "int64": "int64",
    "float16": "float32",
    "int8": "int32",
    "bool": "int64",
}


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    x = (20 * RNG.standard_normal(shape)).astype(dtype)
    if x.dtype.kind == "f" and x.size > 3:
        x.reshape(-1)[:4] = np.nan, np.inf, -np.inf, -0.0
    return x


def assert_same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """The same bits, of whichever NaN."""
    both = [np.where(np.isnan(x), np.nan, x) if x.dtype.kind == "f" else x for x in (found, wanted)]
    assert both[0].tobytes() == both[1].tobytes()


@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(
    "shape", [(50_000,), (30_000, 8), (40, 900), (3, 50_000), (7, 2, 5), (5, 0), (0, 4), (1, 1)], ids=str
)
def test_rows(shape: tuple[int, ...], index: str, dtype: str) -> None:
    rows, places = drawn(shape, dtype), RNG.integers(0, 9, shape[0]).astype(index)
    found = drawn((9, *shape[1:]), SUMS[dtype])
    wanted = found.copy()
    with np.errstate(invalid="ignore"):
        add_rows(np, found, places, rows)
        np.add.at(wanted, (places,), rows)
    assert_same(found, wanted)


@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("shape", [(50_000,), (300, 200), (20, 30, 40), (3, 0)], ids=str)
def test_elements(shape: tuple[int, ...], dtype: str) -> None:
    """One index for each element on the odd axes, and the position itself on the others; turned updates."""
    updates = drawn(shape[::-1], dtype).T
    own = [np.arange(n).reshape(n, *[1] * (len(shape) - 1 - axis)) % 6 for axis, n in enumerate(shape)]
    places = tuple(RNG.integers(0, 6, shape) if axis % 2 else one for axis, one in enumerate(own))
    found = drawn((6,) * len(shape), SUMS[dtype])
    wanted = found.copy()
    with np.errstate(invalid="ignore"):
        add_elements(np, found, places, updates)
        np.add.at(wanted, places, updates)
    assert_same(found, wanted)
