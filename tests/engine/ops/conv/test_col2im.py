"""`add_windows` is the adjoint of `correlate`, on every code path."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ops.conv.im2col import add_windows, correlate
from engine.ops.conv.windows import Windows
from tests.engine.ops.conv.test_im2col import CASES, HOST, chunk, operands, overlaps

__all__ = ["chunk"]  # the fixture

#: few windows, far apart: each is added in place
SPARSE = (Windows((2, 2), (5, 6), (0, 1), (1, 1)), (11, 12), 1)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("device", ["cpu", "new"])
@pytest.mark.parametrize(("windows", "extents", "groups"), [*CASES, SPARSE])
def test_add_windows_is_the_adjoint_of_correlate(
    windows: Windows, extents: tuple[int, ...], groups: int, device: str
) -> None:
    """Σ g · correlate(x) = Σ add_windows(g) · x for all x and g."""
    x, kernel, y = operands(windows, extents, groups)
    g, back = np.random.default_rng(7).normal(size=y.shape), np.full(x.shape, np.nan)
    correlate(HOST, x, kernel, y, windows, groups)
    add_windows(RunContext(np, device=device), g, kernel, back, windows, groups)
    np.testing.assert_allclose(np.sum(g * y), np.sum(back * x), 1e-11)


@pytest.mark.parametrize("spoilt", [np.nan, np.inf])
def test_non_finite_tap_spoils_only_the_elements_it_reaches(spoilt: float) -> None:
    windows, extents, groups = CASES[1]
    _, kernel, y = operands(windows, extents, groups)
    kernel[0, 0, 1, 2] = spoilt
    g, back = np.ones(y.shape), np.empty((2, 2, *extents))
    add_windows(HOST, g, kernel, back, windows, groups)
    reached = np.zeros(extents, bool)
    for _, tap, element in overlaps(windows, extents):
        reached[element] |= tap == (1, 2)
    np.testing.assert_array_equal(np.isfinite(back[:, 0]), np.broadcast_to(~reached, back[:, 0].shape))
    assert np.isfinite(back[:, 1]).all()
