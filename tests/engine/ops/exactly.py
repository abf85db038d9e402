"""Errors of results against values in forty digits: helpers for tests of special functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest

mp: Any = pytest.importorskip("mpmath")

DIGITS: Final = 40
#: bits of the significand, and the exponent of the smallest normal number
_FORMATS: Final = {"float16": (11, -13), "float32": (24, -125), "float64": (53, -1021)}


def units(result: Any, exact: Callable[..., Any], *arrays: Any) -> np.ndarray[Any, Any]:
    """Return the errors in units in the last place; `exact` computes exact values from mpmath numbers.

    If the exact value is out of range or NaN, the result has to be infinite or NaN as well, or the error is infinite.
    """
    result = np.asarray(result)
    points = zip(*(np.broadcast_to(a, result.shape).ravel().tolist() for a in arrays), strict=True)
    with mp.workdps(DIGITS):
        errors = [
            _error(exact(*map(mp.mpf, point)), float(y), result.dtype.name)
            for point, y in zip(points, result.ravel().tolist(), strict=True)
        ]
    return np.array(errors)


def _error(exact: Any, result: float, dtype: str) -> float:
    bits, least = _FORMATS[dtype]
    exact = mp.mpf(exact)
    most = mp.mpf(float(np.finfo(dtype).max)) * (1 + mp.mpf(2) ** -bits)
    if mp.isnan(exact) or mp.isnan(result):
        return 0.0 if mp.isnan(exact) and mp.isnan(result) else float("inf")
    if abs(exact) >= most or mp.isinf(result):
        return 0.0 if abs(exact) >= most * (1 - 2.0**-9) and result == mp.sign(exact) * mp.inf else float("inf")
    return float(abs(result - exact) / mp.mpf(2) ** (max(mp.mag(exact) if exact else least, least) - bits))


def worst(errors: np.ndarray[Any, Any], *arrays: Any) -> tuple[float, Sequence[float]]:
    """Return the largest error, and its arguments."""
    index = int(np.argmax(errors))
    return float(errors[index]), [float(np.broadcast_to(a, errors.shape).ravel()[index]) for a in arrays]
