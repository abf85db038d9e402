"""Resampling against loops over taps, and the invariants of each method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.ir.errors import BadAttribute
from tests.engine.ops.run import run

Array = np.ndarray[Any, Any]


def kernel(method: str, t: float, a: float) -> float:
    """Keys' cubic kernel, or a triangle."""
    t = abs(t)
    if method == "linear":
        return max(0.0, 1 - t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def looped(x: Array, size: int, method: str, *, antialias: bool = False, corners: bool = False) -> list[float]:
    """Resample entry by entry, tap by tap."""
    n, result = len(x), []
    for i in range(size):
        center = (i * (n - 1) / (size - 1) if size > 1 else 0.0) if corners else (i + 0.5) * n / size - 0.5
        if method == "nearest":
            result.append(x[min(max(math.floor(center + 0.5), 0), n - 1)])
        elif antialias:
            weights = [kernel(method, (j - center) / max(n / size, 1), -0.5) for j in range(n)]
            result.append(float(np.dot(weights, x)) / sum(weights))
        else:
            taps = range(math.floor(center) - 1, math.floor(center) + 3)
            result.append(sum(kernel(method, j - center, -0.75) * x[min(max(j, 0), n - 1)] for j in taps))
    return result


@pytest.mark.parametrize("size", [1, 2, 3, 7, 11, 20])
@pytest.mark.parametrize(
    ("method", "attrs"),
    [
        ("nearest", {}), ("linear", {}), ("cubic", {}), ("linear", {"corners": True}), ("cubic", {"corners": True}),
        ("linear", {"antialias": True}), ("cubic", {"antialias": True}),
    ],
)  # fmt: skip
def test_each_entry_is_a_weighted_sum_of_taps(method: str, attrs: dict[str, bool], size: int) -> None:
    x = np.random.default_rng(0).normal(size=7)
    expected = x if size == 7 else looped(x, size, method, **attrs)
    np.testing.assert_allclose(run("resize", x, sizes=[size], method=method, **attrs), expected, 1e-12, 1e-14)
    several = np.stack([x, 2 * x])[:, :, None]
    actual = run("resize", several, sizes=[size], axes=[1], method=method, **attrs)
    np.testing.assert_allclose(actual[1, :, 0], 2 * np.asarray(expected), 1e-12, 1e-14)


@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_constants_are_preserved(method: str, antialias: bool) -> None:
    actual = run("resize", np.full((5, 6), 3.0), sizes=[3, 17], method=method, antialias=antialias)
    np.testing.assert_allclose(actual, np.full((3, 17), 3.0), 1e-14)


def test_conflicting_attributes_are_refused() -> None:
    x = np.zeros((2, 5))
    with pytest.raises(BadAttribute, match="antialias requires method linear or cubic"):
        run("resize", x, sizes=[3], method="nearest", antialias=True)
    with pytest.raises(BadAttribute, match="corners cannot be combined with antialias"):
        run("resize", x, sizes=[3], antialias=True, corners=True)
    with pytest.raises(BadAttribute, match="sizes must have at most 2 entries, but has 3 entries"):
        run("resize", x, sizes=[3, 3, 3])
    with pytest.raises(BadAttribute, match="sizes must have 1 entry, one for each entry of axes, but has 2"):
        run("resize", x, sizes=[3, 3], axes=[0])
