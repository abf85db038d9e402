"""Reductions by segment: a loop over rows is the reference; empty segments, NaN, and every kind of dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ops.common.numerics import extremum_identity
from engine.ops.reduce.segments import reduce_segments
from tests.engine.ops.run import grads, run

Array = np.ndarray[Any, Any]
UFUNCS = {"segment_max": np.maximum, "segment_min": np.minimum, "segment_prod": np.multiply}
EMPTY = {"segment_max": -math.inf, "segment_min": math.inf, "segment_prod": 1.0, "segment_mean": math.nan}


def looped(op: str, x: Array, ids: Array, segments: int) -> Array:
    """The reference, by a loop over segments."""
    y = np.full((segments, *x.shape[1:]), EMPTY[op])
    for s in set(ids.tolist()):
        rows = x[ids == s]
        y[s] = rows.mean(0) if op == "segment_mean" else UFUNCS[op].reduce(rows, 0)
    return y


@pytest.mark.parametrize("op", EMPTY)
@pytest.mark.parametrize("shape", [(200,), (60, 3), (30, 2, 2), (0, 3), (5, 0)])
def test_segments_match_a_loop(op: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, ids = rng.normal(size=shape), rng.integers(0, 9, shape[0])
    np.testing.assert_allclose(run(op, x, ids, segments=11), looped(op, x, ids, 11), 1e-12)


@pytest.mark.parametrize("ufunc", ["maximum", "minimum", "multiply"])
@pytest.mark.parametrize("shape", [(37, 3), (32,), (1,), (0, 2)])
def test_general_implementation_matches_the_cpu(ufunc: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x, ids = rng.normal(size=shape), rng.integers(0, 5, shape[0])
    cpu, general = np.full((6, *shape[1:]), 7.0), np.full((6, *shape[1:]), 7.0)
    reduce_segments(RunContext(np), ufunc, x, ids, cpu)
    reduce_segments.general(RunContext(np), ufunc, x, ids, general)
    np.testing.assert_allclose(general, cpu, 1e-13)


class RecordingNumPy:
    """NumPy that records the results of flatnonzero."""

    def __init__(self) -> None:
        self.results: list[Array] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def flatnonzero(self, x: Array) -> Array:
        self.results.append(np.flatnonzero(x))
        return self.results[-1]


def test_other_devices_write_each_segment_once() -> None:
    """The order of several writes to one place is undefined."""
    watched, ids, out = RecordingNumPy(), np.array([3, 1, 1, 4, 3, 3]), np.zeros(6)
    reduce_segments(RunContext(watched, device="new"), "maximum", np.arange(6.0), ids, out)
    np.testing.assert_array_equal(out, [0, 2, 0, 5, 3, 0])
    assert [len(lasts) for lasts in watched.results] == [3]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32"])
def test_empty_segment_is_at_the_end_of_the_range(dtype: str) -> None:
    x = np.array([1, 0], dtype)
    for op, ufunc in (("segment_max", "maximum"), ("segment_min", "minimum")):
        actual = run(op, x, np.array([1, 1]), segments=2)
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, np.array([extremum_identity(ufunc, x.dtype), ufunc == "maximum"], dtype))
        assert getattr(np, ufunc)(x, actual[0]).tolist() == x.tolist()


@pytest.mark.parametrize("op", ["segment_max", "segment_min"])
def test_nan_wins_in_its_own_segment_only(op: str) -> None:
    x, ids = np.array([1.0, math.nan, 3.0, 4.0]), np.array([0, 0, 1, 1])
    value, (gradient,) = grads(op, x, ids, segments=2, wrt=[0])
    assert [math.isnan(v) for v in value] == [True, False]
    assert math.isfinite(gradient[2:].sum())
    assert gradient[2:].sum() == 1


def test_gradient_of_segment_prod_with_zeros() -> None:
    x, ids = np.array([2.0, 3.0, 0.0, 5.0, 0.0, 7.0]), np.array([1, 0, 1, 0, 0, 2])
    _, (gradient,) = grads("segment_prod", x, ids, segments=3, wrt=[0])
    np.testing.assert_array_equal(gradient, [0, 0, 2, 0, 15, 1])


def test_float16_is_averaged_in_float32() -> None:
    x = np.full(4000, 100, "float16")
    np.testing.assert_array_equal(run("segment_mean", x, np.zeros(4000, "int64"), segments=1), np.float16([100]))
