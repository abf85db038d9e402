"""How far results are from values in forty digits: what tests of special functions are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest

mp: Any = pytest.importorskip("mpmath")

DIGITS: Final = 40
#: bits of a number, and the exponent of the least normal one
_FORMATS: Final = {"float16": (11, -13), "float32": (24, -125), "float64": (53, -1021)}


def units(found: Any, exact: Callable[..., Any], *arrays: Any) -> np.ndarray[Any, Any]:
    """The errors in units in the last place of the exact values, which `exact` gives of mpmath's numbers.

    Where an exact value is beyond the dtype, or no number, the one that is found has to be that: or the error is
    infinite.
    """
    found = np.asarray(found)
    points = zip(*(np.broadcast_to(a, found.shape).ravel().tolist() for a in arrays), strict=True)
    with mp.workdps(DIGITS):
        errors = [
            _apart(exact(*map(mp.mpf, point)), float(y), found.dtype.name)
            for point, y in zip(points, found.ravel().tolist(), strict=True)
        ]
    return np.array(errors)


def _apart(exact: Any, found: float, dtype: str) -> float:
    bits, least = _FORMATS[dtype]
    exact = mp.mpf(exact)
    most = mp.mpf(float(np.finfo(dtype).max)) * (1 + mp.mpf(2) ** -bits)
    if mp.isnan(exact) or mp.isnan(found):
        return 0.0 if mp.isnan(exact) and mp.isnan(found) else float("inf")
    if abs(exact) >= most or mp.isinf(found):
        return 0.0 if abs(exact) >= most * (1 - 2.0**-9) and found == mp.sign(exact) * mp.inf else float("inf")
    return float(abs(found - exact) / mp.mpf(2) ** (max(mp.mag(exact) if exact else least, least) - bits))


def worst(errors: np.ndarray[Any, Any], *arrays: Any) -> tuple[float, Sequence[float]]:
    """The greatest error, and where it is."""
    at = int(np.argmax(errors))
    return float(errors[at]), [float(np.broadcast_to(a, errors.shape).ravel()[at]) for a in arrays]
