"""Adding at indices gives what NumPy's add.at gives, to the bit, however it is done."""

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


@together
@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(
    "shape", [(50_000,), (30_000, 8), (40, 900), (3, 50_000), (6, 2), (7, 2, 5), (5, 0), (0, 4), (1, 1)], ids=str
)
def test_rows(shape: tuple[int, ...], index: str, dtype: str) -> None:
    rows, places = drawn(shape, dtype), RNG.integers(0, 9, shape[0]).astype(index)
    found = drawn((9, *shape[1:]), SUMS[dtype])
    wanted = found.copy()
    with np.errstate(invalid="ignore"):
        add_rows(RunContext(np), found, places, rows)
        np.add.at(wanted, (places,), rows)
    assert_same(found, wanted)


@together
@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((50_000,), 0), ((300, 200), 0), ((300, 200), 1), ((3, 20_000), 1), ((20, 30, 40), 1), ((3, 0), 1)],
    ids=str,
)
def test_elements(shape: tuple[int, ...], axis: int, index: str, dtype: str) -> None:
    """Turned updates, and targets that are larger off the axis."""
    updates = drawn(shape[::-1], dtype).T
    picked = RNG.integers(0, 6, shape).astype(index)
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = picked
    found = drawn(tuple(6 if i == axis else n + 2 for i, n in enumerate(shape)), SUMS[dtype])
    wanted = found.copy()
    with np.errstate(invalid="ignore"):
        add_elements(RunContext(np), found, picked, axis, updates)
        np.add.at(wanted, tuple(grid), updates)
    assert_same(found, wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(50_000, 8), (30_000, 1), (500, 400)], ids=str)
def test_rows_take_no_more_memory_than_is_said(shape: tuple[int, ...], dtype: str) -> None:
    """Those that have to be converted, too."""
    rows, places, found = np.ones(shape, dtype), np.zeros(shape[0], "int64"), np.zeros((9, *shape[1:]))
    most = add_rows_bytes(TensorType.of(found), TensorType.of(rows))
    assert allocated(lambda: add_rows(RunContext(np), found, places, rows)) <= most + 20_000


class Atomic:
    """NumPy, which adds neither to signed numbers of 64 bits, as CUDA, nor any others than these together."""

    asarray = staticmethod(np.asarray)

    class add:  # noqa: N801 - as NumPy's
        @staticmethod
        def at(target: np.ndarray[Any, Any], index: tuple[Any, ...], updates: Any) -> None:
            assert target.dtype == np.asarray(updates).dtype != "int64"
            np.add.at(target, index, updates)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_a_gpu_adds_whole_numbers_of_64_bits_as_unsigned_ones(dtype: str) -> None:
    """Of negative numbers the same bits; a number alone counts as one of these."""
    updates, places = drawn((40,), dtype), RNG.integers(0, 9, 40)
    found = drawn((9,), dtype)
    wanted = found.copy()
    with np.errstate(invalid="ignore"):
        add_at(RunContext(Atomic, device="cuda"), found, (places,), updates)
        np.add.at(wanted, (places,), updates)
    assert_same(found, wanted)
    add_at(RunContext(Atomic, device="cuda"), found, (places,), found.dtype.type(-3))
    np.add.at(wanted, (places,), -3)
    assert_same(found, wanted)
