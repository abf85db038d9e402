"""Polynomials in graph nodes match NumPy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.elementwise.base import power_series
from tests.engine.ops.values import come_to


@pytest.mark.parametrize("coefficients", [[2.5], [1.0, -3.0], [0.1, 0.2, 0.3, -0.4]])
def test_power_series_matches_numpy(coefficients: list[float]) -> None:
    x = np.linspace(-3.0, 3.0, 7)
    actual = come_to(lambda v: power_series(coefficients, v), x)
    np.testing.assert_array_equal(actual, np.polynomial.polynomial.polyval(x, coefficients))
