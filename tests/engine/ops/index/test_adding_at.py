"""Adding at indices matches NumPy's add.at bit for bit, on every code path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.index.gather import add_at, add_elements, add_rows, add_rows_bytes
from tests.engine.ops.values import allocated
from tests.sampling import together

RNG = np.random.default_rng(5)
#: dtypes of the updates, and of the sums
SUMS = {
    "float32": "float32",
    "float64": "float64",
    "int64": "int64",
    "float16": "float32",
    "int8": "int32",
    "bool": "int64",
}


def random_array(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    x = (20 * RNG.standard_normal(shape)).astype(dtype)
    if x.dtype.kind == "f" and x.size > 3:
        x.reshape(-1)[:4] = np.nan, np.inf, -np.inf, -0.0
    return x


def assert_same(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Compare bit for bit; all NaNs are equal."""
    both = [np.where(np.isnan(x), np.nan, x) if x.dtype.kind == "f" else x for x in (actual, expected)]
    assert both[0].tobytes() == both[1].tobytes()


@together
@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(
    "shape", [(50_000,), (30_000, 8), (40, 900), (3, 50_000), (6, 2), (7, 2, 5), (5, 0), (0, 4), (1, 1)], ids=str
)
def test_add_rows_matches_numpy(shape: tuple[int, ...], index: str, dtype: str) -> None:
    rows, places = random_array(shape, dtype), RNG.integers(0, 9, shape[0]).astype(index)
    actual = random_array((9, *shape[1:]), SUMS[dtype])
    expected = actual.copy()
    with np.errstate(invalid="ignore"):
        add_rows(RunContext(np), actual, places, rows)
        np.add.at(expected, (places,), rows)
    assert_same(actual, expected)


@together
@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((50_000,), 0), ((300, 200), 0), ((300, 200), 1), ((3, 20_000), 1), ((20, 30, 40), 1), ((3, 0), 1)],
    ids=str,
)
def test_add_elements_matches_numpy(shape: tuple[int, ...], axis: int, index: str, dtype: str) -> None:
    """Transposed updates, and targets that are larger on the other axes."""
    updates = random_array(shape[::-1], dtype).T
    picked = RNG.integers(0, 6, shape).astype(index)
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = picked
    actual = random_array(tuple(6 if i == axis else n + 2 for i, n in enumerate(shape)), SUMS[dtype])
    expected = actual.copy()
    with np.errstate(invalid="ignore"):
        add_elements(RunContext(np), actual, picked, axis, updates)
        np.add.at(expected, tuple(grid), updates)
    assert_same(actual, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(50_000, 8), (30_000, 1), (500, 400)], ids=str)
def test_add_rows_stays_within_its_declared_memory(shape: tuple[int, ...], dtype: str) -> None:
    """Rows that have to be converted are included."""
    rows, places, sums = np.ones(shape, dtype), np.zeros(shape[0], "int64"), np.zeros((9, *shape[1:]))
    limit = add_rows_bytes(TensorType.of(sums), TensorType.of(rows))
    assert allocated(lambda: add_rows(RunContext(np), sums, places, rows)) <= limit + 20_000


class Atomic:
    """NumPy with the limits of CUDA: no int64 targets, and no mixed dtypes."""

    asarray = staticmethod(np.asarray)

    class add:  # noqa: N801 - as NumPy's
        @staticmethod
        def at(target: np.ndarray[Any, Any], index: tuple[Any, ...], updates: Any) -> None:
            assert target.dtype == np.asarray(updates).dtype != "int64"
            np.add.at(target, index, updates)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_gpu_adds_int64_as_unsigned(dtype: str) -> None:
    """Negative numbers give the same bits; so does a scalar update."""
    updates, places = random_array((40,), dtype), RNG.integers(0, 9, 40)
    actual = random_array((9,), dtype)
    expected = actual.copy()
    with np.errstate(invalid="ignore"):
        add_at(RunContext(Atomic, device="cuda"), actual, (places,), updates)
        np.add.at(expected, (places,), updates)
    assert_same(actual, expected)
    add_at(RunContext(Atomic, device="cuda"), actual, (places,), actual.dtype.type(-3))
    np.add.at(expected, (places,), -3)
    assert_same(actual, expected)
