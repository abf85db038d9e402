"""What is known of elements: on the processor by looking, elsewhere by their dtype alone."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ops.common.numerics import known_finite, known_without_nan

HOST, OTHER = RunContext(np), RunContext(np, device="new")


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -np.inf])
def test_the_processor_looks(spoilt: float) -> None:
    x, bad = np.ones((3, 4)), np.ones((3, 4))
    bad[2, 3] = spoilt
    assert known_finite(HOST, x, np.arange(3))
    assert not known_finite(HOST, x, bad)
    assert known_without_nan(HOST, x)
    assert known_without_nan(HOST, bad) == bool(spoilt == spoilt)  # noqa: PLR0124 - NaN alone differs from itself


def test_where_the_sum_overflows_nothing_is_known() -> None:
    large = np.full(4, 2e38, np.float32)
    with np.errstate(over="ignore"):  # as wherever kernels run
        assert not known_finite(HOST, large)
    assert known_finite(HOST, large, dtype=np.dtype("float64"))


def test_others_do_not_wait_to_hear_it() -> None:
    assert not known_finite(OTHER, np.ones(3))
    assert not known_without_nan(OTHER, np.ones(3))
    assert known_without_nan(OTHER, np.arange(3))
