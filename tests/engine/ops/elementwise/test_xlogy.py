"""xlogy and xlog1py against forty digits, and with a factor of 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

mp = pytest.importorskip("mpmath")
exactly = pytest.importorskip("tests.engine.ops.exactly")

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan
EXACT = {"xlogy": lambda x, y: x * mp.log(y), "xlog1py": lambda x, y: x * mp.log1p(y)}
#: values of y with a logarithm of −∞
POLES = {"xlogy": 0.0, "xlog1py": -1.0}


def points(op: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=400) * 10.0 ** rng.integers(-8, 8, 400)
    y = 10.0 ** rng.uniform(-20, 20, 400)
    near = 1 + rng.normal(size=400) * 1e-6 if op == "xlogy" else rng.uniform(-0.999999, 1e-9, 400)
    return np.concatenate([x, x]), np.concatenate([y, near])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", list(EXACT))
def test_values(op: str, dtype: str) -> None:
    """The bound: up to twice the error of the logarithm, and half a unit for the product."""
    x, y = (a.astype(dtype) for a in points(op))
    errors = exactly.units(run(op, x, y), EXACT[op], x, y)
    assert errors.max() <= (4.5 if dtype == "float64" else 5.5), exactly.worst(errors, x, y)


@pytest.mark.parametrize("op", list(EXACT))
def test_zero_factor_gives_zero_unless_y_is_nan(op: str) -> None:
    y = np.array([POLES[op], -3.0, INF, -INF, 2.0, NAN])
    zero = np.zeros(6)
    np.testing.assert_array_equal(run(op, zero, y), [0, 0, 0, 0, 0, NAN])
    np.testing.assert_array_equal(run(op, -zero, y), [0, 0, 0, 0, 0, NAN])
    np.testing.assert_array_equal(run(op, np.array([1.0, NAN, -1.0]), np.array([POLES[op], 2, INF])), [-INF, NAN, -INF])


@pytest.mark.parametrize("op", list(EXACT))
def test_derivatives(op: str) -> None:
    x, y = np.array([2.0, -3.0, 0.0]), np.array([0.5, 4.0, 0.25])
    up = y - POLES[op]
    logs = np.log(up)
    for by, expected in (
        ((0, 0), [x * logs, logs, 0 * x]),
        ((0, 1), [x * logs, logs, 1 / up]),
        ((1, 1), [x * logs, x / up, -x / up**2]),
        ((1, 0), [x * logs, x / up, 1 / up]),
    ):
        np.testing.assert_allclose(derivatives(op, x, y, by=by), expected, 1e-15)


@pytest.mark.parametrize("op", list(EXACT))
def test_derivatives_at_the_pole(op: str) -> None:
    """∂/∂x is the logarithm, and NaN if there is none; ∂/∂y is 0 for x = 0, and ∂²/∂x∂y the reciprocal."""
    x, y = np.zeros(4), POLES[op] + np.array([0.0, -0.0, -1.0, 1.0])
    np.testing.assert_array_equal(derivatives(op, x, y, by=0)[1], [-INF, -INF, NAN, 0])
    np.testing.assert_array_equal(derivatives(op, x, y, by=(0, 0))[2], [0, 0, 0, 0])
    np.testing.assert_array_equal(derivatives(op, x, y, by=1)[1], [0, 0, 0, 0])
    np.testing.assert_array_equal(derivatives(op, x, y, by=(1, 0))[2], [INF, INF, -1, 1])
    pole = np.full(2, POLES[op])
    np.testing.assert_array_equal(derivatives(op, np.array([1.0, -1.0]), pole, by=0)[1], [-INF, -INF])
    np.testing.assert_array_equal(derivatives(op, np.array([1.0, -1.0]), pole, by=1)[1], [INF, -INF])
