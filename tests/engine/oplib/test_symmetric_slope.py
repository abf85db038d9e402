"""Divided differences in forms that cancel nothing."""

from __future__ import annotations

import numpy as np
import pytest

from engine.oplib import symmetric_slope

W = np.array([[1.0, 1.0 + 2**-40, 1.5, 3.0, 1e9]])


def test_of_roots_and_logarithms() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for function in ("sqrt", "log"):
            apply = getattr(mpmath, function)
            found = symmetric_slope._differences(np, W, function)[0]
            for i, a in enumerate(map(mpmath.mpf, W[0])):
                for j, b in enumerate(map(mpmath.mpf, W[0])):
                    wanted = mpmath.diff(apply, a) if i == j else (apply(a) - apply(b)) / (a - b)
                    assert abs(found[i, j] / wanted - 1) < 1e-15
