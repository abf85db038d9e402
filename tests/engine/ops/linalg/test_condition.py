"""Condition numbers of batches of matrices of any shape, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import run


@pytest.mark.parametrize("shape", [(5, 2, 2), (1, 3, 2), (4, 1, 2, 3), (3, 1)], ids=str)
def test_matches_numpy(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(run("cond_number", x), np.linalg.cond(x), 1e-12)
