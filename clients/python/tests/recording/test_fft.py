"""`fft` in recorded functions: values match NumPy, gradients match differences, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.recording.fft_cases import BOX, CASES
from clients.python.tests.recording.namespace_cases import Case, X
from clients.python.tests.recording.test_complex import differences, total
from clients.python.tests.recording.test_namespace import compare, names
from gradserve_client.recording import fft, namespace
from tests.sampling import together

#: each function with each of its options, in double precision
COMPARED = [case for case in CASES if case.arrays and case.arrays[0].dtype in (np.float64, np.complex128)]


@together
@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_fft_matches_numpy(client: gs.Client, case: Case) -> None:
    compare(client, case, fft, np.fft)


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPARED, ids=names(COMPARED))
def test_gradients(client: gs.Client, case: Case) -> None:
    x = case.arrays[0]
    expected = differences(lambda x: float(total(np, case, np.fft, [x])), x)
    gradient = gs.function(lambda x: total(namespace, case, fft, [x]), client=client).grad(x)
    assert gradient.dtype == x.dtype
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


def test_filter_by_a_product_of_spectra(client: gs.Client) -> None:
    """The gradient of half the square of a convolution is the correlation with it."""

    def energy(x: Any, kernel: Any) -> Any:
        xp = x.__array_namespace__()
        smooth = xp.fft.irfft(xp.fft.rfft(x) * xp.fft.rfft(kernel), n=5)
        return xp.sum(smooth**2) / 2

    x, kernel = BOX[0, 0], np.array([0.5, 0.25, 0.0, 0.0, 0.25])
    circulant = np.stack([np.roll(kernel, i) for i in range(5)], axis=1)
    value, gradient = gs.function(energy, client=client).value_and_grad(x, kernel)
    assert np.isclose(value, ((circulant @ x) ** 2).sum() / 2, rtol=1e-14)
    np.testing.assert_allclose(gradient, circulant.T @ circulant @ x, rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda x: fft.rfft(x * 1j), "rfft.*complex128.*fft or fftn"),
        (lambda x: fft.ihfft(x * 1j), "ihfft.*complex128"),
        (lambda x: fft.fft(x, axis=2), "fft.*axis 2 is out of range"),
        (lambda x: fft.fft(x, n=0), r"fft.*\[0\] on the axes \[1\]"),
        (lambda x: fft.irfft(x[:, :1]), "irfft.*needs points"),
        (lambda x: fft.fft(x, norm="unitary"), "fft.*not 'unitary'"),
        (lambda x: fft.fftn(x, axes=(0, 0)), "fftn.*contains an axis twice"),
        (lambda x: fft.fft2(x, s=(2, 3, 4)), "fft2.*3 sizes.*2 axes"),
        (lambda x: fft.fftn(x[0, 0]), "fftn.*needs at least one axis"),
    ],
)
def test_refusals_name_function_and_line(client: gs.Client, call: Any, told: str) -> None:
    with pytest.raises(gs.RecordingError, match=told) as caught:
        gs.function(call, client=client)(X)
    assert "(test_fft.py:" in str(caught.value)


def test_missing_function_is_an_attribute_error() -> None:
    assert not hasattr(fft, "dct")
