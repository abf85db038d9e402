"""Checks for finite and NaN-free arrays: by value on the CPU, by dtype alone on other devices."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ops.common.numerics import known_finite, known_without_nan

HOST, OTHER = RunContext(np), RunContext(np, device="new")


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -np.inf])
def test_cpu_checks_the_values(spoilt: float) -> None:
    x, bad = np.ones((3, 4)), np.ones((3, 4))
    bad[2, 3] = spoilt
    assert known_finite(HOST, x, np.arange(3))
    assert not known_finite(HOST, x, bad)
    assert known_without_nan(HOST, x)
    assert known_without_nan(HOST, bad) == bool(spoilt == spoilt)  # noqa: PLR0124 - NaN alone differs from itself


def test_overflowing_sum_is_not_known_finite() -> None:
    large = np.full(4, 2e38, np.float32)
    with np.errstate(over="ignore"):  # as the executor does for kernels
        assert not known_finite(HOST, large)
    assert known_finite(HOST, large, dtype=np.dtype("float64"))


def test_other_devices_check_the_dtype_only() -> None:
    assert not known_finite(OTHER, np.ones(3))
    assert not known_without_nan(OTHER, np.ones(3))
    assert known_without_nan(OTHER, np.arange(3))
