"""`logaddexp` of two infinite operands."""

from __future__ import annotations

import numpy as np

from tests.engine.ops.run import grads

INF = np.inf


def test_two_infinities_share_the_gradient() -> None:
    a, b = np.array([INF, -INF, INF, 3.0, 2.0]), np.array([INF, -INF, 3.0, INF, 2.0])
    value, (da, db) = grads("logaddexp", a, b)
    np.testing.assert_allclose(value, [INF, -INF, INF, INF, 2 + np.log(2)], 1e-15)
    np.testing.assert_array_equal(da, [0.5, 0, 1, 0, 0.5])
    np.testing.assert_array_equal(db, [0.5, 0, 0, 1, 0.5])
