"""Extrema: NaN wins, and the first NaN is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ops.common.numerics import extremum_identity, first_extreme, is_chosen, is_nan
from tests.engine.ops.values import come_to

X = np.array([[1.0, np.nan, 3.0, np.nan], [2.0, 2.0, -1.0, 2.0], [-0.0, 0.0, -3.0, -3.0]])


@pytest.mark.parametrize("device", ["cpu", "cuda", "new"])
@pytest.mark.parametrize("function", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_first_extreme_matches_numpy(axis: int, function: Any, device: str) -> None:
    actual = first_extreme(RunContext(np, device=device), function, X, axis)
    np.testing.assert_array_equal(actual, getattr(np, function)(X, axis=axis))


def test_gpu_picks_the_first_nan() -> None:
    class AnyNaN:
        """CuPy stand-in: argmax may return any of several NaNs."""

        isnan, where = staticmethod(np.isnan), staticmethod(np.where)
        argmax = argmin = staticmethod(lambda x, axis: np.full(x.shape[:axis] + x.shape[axis + 1 :], 3))

    actual = first_extreme(RunContext(AnyNaN, device="cuda"), "argmax", X[:1], 1)
    assert actual.tolist() == [1]
    assert first_extreme(RunContext(AnyNaN, device="cuda"), "argmax", np.arange(4)[None], 1).tolist() == [3]


def test_is_nan_and_is_chosen() -> None:
    top = X.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(come_to(is_nan, X), np.isnan(X))
    np.testing.assert_array_equal(come_to(is_chosen, X, top), (top == X) | np.isnan(X))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integer_extremum_identities(dtype: str) -> None:
    ends = [extremum_identity(ufunc, np.dtype(dtype)) for ufunc in ("maximum", "minimum")]
    assert ends == [np.iinfo(dtype).min, np.iinfo(dtype).max]


def test_float_and_bool_extremum_identities() -> None:
    assert [extremum_identity(ufunc, np.dtype("float16")) for ufunc in ("maximum", "minimum")] == [-np.inf, np.inf]
    assert [extremum_identity(ufunc, np.dtype("bool")) for ufunc in ("maximum", "minimum")] == [0, 1]
