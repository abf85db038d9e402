"""Cumulative products, log-sum-exps and extrema: narrow floats, infinities, and empty arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import grads, run

INF = np.inf


def test_float16_is_computed_in_float32_and_rounded_once() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, 40).astype("float16")
    wide = x.astype("float32")
    np.testing.assert_array_equal(run("cumprod", x, axis=0), np.cumprod(wide).astype("float16"))
    logarithms = np.logaddexp.accumulate(wide)
    np.testing.assert_array_equal(run("cumlogsumexp", x, axis=0), logarithms.astype("float16"))


def test_leading_minus_infinities_get_no_gradient() -> None:
    x = np.array([-INF, -INF, 0.0, np.log(2)])
    value, (gradient,) = grads("cumlogsumexp", x, axis=0)
    np.testing.assert_allclose(value, [-INF, -INF, 0, np.log(3)], 1e-15)
    np.testing.assert_allclose(gradient, [0, 0, 1 + 1 / 3, 2 / 3], 1e-15)


def test_infinities_share_the_gradient() -> None:
    x = np.array([[0.0, INF, 1.0, INF, -1.0]])
    value, (gradient,) = grads("cumlogsumexp", x, axis=1, cotangent=[[1.0, 2.0, 4.0, 8.0, 16.0]])
    np.testing.assert_array_equal(value, [[0, INF, INF, INF, INF]])
    np.testing.assert_allclose(gradient, [[1, 2 + 4 + 8 / 2 + 16 / 2, 0, 8 / 2 + 16 / 2, 0]], 1e-15)


@pytest.mark.parametrize("op", ["cumprod", "cumlogsumexp", "cummax", "cummin"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_empty_arrays(op: str, shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        value, (gradient,) = grads(op, np.zeros(shape), axis=axis)
        assert value.shape == gradient.shape == shape
