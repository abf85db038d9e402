"""The examples of spectra and complex numbers, each run as a user does, against the known values that they print."""

from __future__ import annotations

import numpy as np
import pytest

from tests.demo.test_loops import numbers, printed, url

__all__ = ["url"]

pytestmark = pytest.mark.slow


def test_spectral_example_solves_poisson_and_learns_an_operator(url: str) -> None:
    lines = printed("spectral", url, "--steps", "40")
    for name, most in (("solution", 1e-13), ("gradient", 1e-13), ("operator", 1e-9)):
        assert numbers(lines[name])[0] < most


def test_sound_is_recovered_from_its_spectrogram(url: str) -> None:
    lines = printed("stft", url)
    assert numbers(lines["gradient"])[0] < 1e-6
    frequency, glide, decay = numbers(lines["found"].partition(", made with")[0])
    np.testing.assert_allclose([frequency, glide, decay], [90, 60, 2], rtol=1e-3)


def test_circuit_gradient_matches_the_parameter_shift_rule(url: str) -> None:
    lines = printed("quantum", url, "--steps", "100")
    assert numbers(lines["gradient"])[0] < 1e-13
    energy, smallest = numbers(lines["energy"])
    assert smallest < energy < smallest + 0.1
