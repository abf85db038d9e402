"""Remainder in compiled kernels: bitwise equal to NumPy, or reported as out of range."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from engine.codegen.functions.expansions import QUOTIENT_LIMIT
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level
from tests.engine.codegen.kernels.accuracy import DTYPES, compiled

pytestmark = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan


def loop_of_two(dtype: str) -> FusedKernel:
    builder = KernelBuilder(dtype)
    a, b = builder.load(Level.ELEMENT), builder.load(Level.ELEMENT)
    builder.store("element", a.mod(b))
    return builder.build()


def assert_matches_numpy(dtype: str, a: Array, b: Array) -> None:
    actual, reported = compiled(loop_of_two(dtype), [a, b])
    assert not reported
    with np.errstate(all="ignore"):
        expected = np.remainder(a, b)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual) | np.isnan(actual), np.signbit(expected) | np.isnan(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_numbers_match_numpy(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=20_000).astype(dtype) for _ in range(2))
    in_range = abs(a * 1000) < abs(b) * QUOTIENT_LIMIT[dtype] / 2
    assert_matches_numpy(dtype, np.ascontiguousarray(a[in_range] * 1000), np.ascontiguousarray(b[in_range]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_next_to_integers(dtype: str) -> None:
    """The quotient is rounded to an integer that it does not reach."""
    rng = np.random.default_rng(3)
    b = rng.uniform(0.1, 3, 20_000).astype(dtype)
    near = (b * rng.integers(1, 1 << 16, b.size)).astype(dtype)
    for a in (near, np.nextafter(near, np.zeros_like(near)), np.nextafter(near, near * 2)):
        for other in (b, -b):
            assert_matches_numpy(dtype, a, other)
            assert_matches_numpy(dtype, -a, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_and_extreme_numbers(dtype: str) -> None:
    least, most = (float(v) for v in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max))
    numbers = [0.0, -0.0, 1, -1, 2.5, -2.5, INF, -INF, NAN, least, -least, 3 * least]
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))
    near = ~((abs(a) > 1000 * abs(b)) & (abs(b) > 0) & np.isfinite(a))
    assert_matches_numpy(dtype, a[near], b[near])
    assert_matches_numpy(dtype, np.array([most, -most], dtype), np.array([most / 3, most / 7], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_large_quotients_are_reported(dtype: str, sign: int) -> None:
    limit = QUOTIENT_LIMIT[dtype]
    for a, b, reported in ((limit, 1, 1), (limit - 1, 1, 0), (1e30, 1e-30, 1), (1, 0, 0), (INF, 1, 0), (1, INF, 0)):
        pair = [np.array([2, sign * a], dtype), np.array([1, b], dtype)]
        assert compiled(loop_of_two(dtype), pair)[1] == reported
