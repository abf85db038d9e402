"""The examples of spectra and complex numbers, each run as a user does, beside the truths that they print."""

from __future__ import annotations

import numpy as np
import pytest

from tests.demo.test_loops import numbers, printed, url

__all__ = ["url"]

pytestmark = pytest.mark.slow


def test_poissons_equation_is_solved_and_an_operator_is_learnt(url: str) -> None:
    lines = printed("spectral", url, "--steps", "40")
    for name, most in (("solution", 1e-13), ("gradient", 1e-13), ("operator", 1e-9)):
        assert numbers(lines[name])[0] < most


def test_a_sound_is_found_from_its_spectrogram(url: str) -> None:
    lines = printed("stft", url)
    assert numbers(lines["gradient"])[0] < 1e-6
    frequency, glide, decay = numbers(lines["found"].partition(", made with")[0])
    np.testing.assert_allclose([frequency, glide, decay], [90, 60, 2], rtol=1e-3)


def test_a_circuit_has_the_gradient_of_the_parameter_shift_rule(url: str) -> None:
    lines = printed("quantum", url, "--steps", "100")
    assert numbers(lines["gradient"])[0] < 1e-13
    found, smallest = numbers(lines["energy"])
    assert smallest < found < smallest + 0.1
