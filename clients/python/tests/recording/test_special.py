"""Special and cumulative functions beyond the standard: values of SciPy and NumPy, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.recording.namespace_cases import TIES, X, Y
from gradserve_client.recording import namespace as xp
from gradserve_client.recording import special

SIZE, OTHER, UNIT = np.abs(X) + 0.3, np.abs(Y) + 0.4, 1 / (1 + np.exp(-X))
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "betainc": (SIZE, OTHER, UNIT),
    "betaln": (SIZE, OTHER),
    "erfinv": (2 * UNIT - 1,),
    "gammainc": (SIZE, OTHER),
    "gammaincc": (SIZE, OTHER),
    "polygamma": (2, SIZE),
    "xlog1py": (X, UNIT),
    "xlogy": (X, SIZE),
    "zeta": (SIZE + 1, OTHER),
}


@pytest.mark.parametrize("name", special.__all__)
def test_functions_match_scipy(client: gs.Client, name: str) -> None:
    reference = getattr(pytest.importorskip("scipy.special", reason="SciPy is not installed"), name)
    arrays = ARGUMENTS.get(name, (SIZE,))
    recorded = gs.function(getattr(special, name), client=client, static=("n",) if name == "polygamma" else ())
    np.testing.assert_allclose(recorded(*arrays), reference(*arrays), rtol=1e-11)
    narrow = [array.astype(np.float32) if isinstance(array, np.ndarray) else array for array in arrays]
    assert recorded(*narrow).dtype == np.float32
    last = len(arrays) - 1
    loss = gs.function(lambda x: xp.sum(getattr(special, name)(*arrays[:last], x)), client=client)
    assert loss.check(arrays[last]).passed


def test_edges_and_numbers(client: gs.Client) -> None:
    assert gs.function(lambda x: special.xlogy(0, x), client=client)(0.0) == 0
    assert gs.function(special.zeta, client=client)(2.0) == pytest.approx(np.pi**2 / 6, rel=1e-15)
    assert gs.function(special.sinc, client=client)(np.array([0, 3])).tolist() == [1, 0]
    with pytest.raises(gs.RecordingError, match=r"xlogy.*must be 2, not 1"):
        gs.function(special.xlogy, client=client)(1.0)
    with pytest.raises(gs.RecordingError, match=r"i0.*complex128"):
        gs.function(special.i0, client=client)(1j)
    with pytest.raises(AttributeError, match="special has no airy"):
        special.airy  # noqa: B018 - must raise


CUMULATIVE: dict[str, Callable[..., Any]] = {
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}


@pytest.mark.parametrize("name", CUMULATIVE)
@pytest.mark.parametrize("x", [X, TIES, X.astype(np.float32)], ids=["x", "ties", "single"])
def test_cumulative_functions(client: gs.Client, name: str, x: Any) -> None:
    run, tolerance = getattr(xp, name), 1e-12 if x.dtype == np.float64 else 1e-6
    forward = gs.function(lambda x: run(x, axis=1), client=client)(x)
    np.testing.assert_allclose(forward, CUMULATIVE[name](x, axis=1), rtol=tolerance, atol=tolerance)
    backward = gs.function(lambda x: run(x, axis=0, reverse=True), client=client)(x)
    np.testing.assert_allclose(backward, CUMULATIVE[name](x[::-1], axis=0)[::-1], rtol=tolerance, atol=tolerance)
    assert forward.dtype == x.dtype
    assert gs.function(lambda x: xp.sum(xp.sin(run(x, axis=0))), client=client).check(X).passed


def test_first_of_ties_takes_the_gradient(client: gs.Client) -> None:
    recorded = gs.function(lambda x: xp.sum(xp.cummax(x)), client=client)
    assert recorded.grad(TIES[0]).tolist() == [4, 0, 0, 0]
    with pytest.raises(gs.RecordingError, match=r"cummax.*no order"):
        recorded(TIES[0] * 1j)
