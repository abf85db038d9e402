"""Powers of complex numbers: exponents with and without a formula of their own, and the ends of the range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.run import run

#: moduli and angles
M, A = np.array([0.5, 1.0, 1.5, 2.0]), np.array([-3.0, -0.4, 1.2, 2.5])


@pytest.mark.parametrize("exponent", [-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 5, 6])
def test_moduli_are_raised_and_angles_multiplied(exponent: float) -> None:
    actual = run("pow_scalar", M * np.exp(1j * A), exponent=exponent)
    np.testing.assert_allclose(actual, M**exponent * np.exp(1j * A * exponent), 1e-14)


def test_roots_of_small_numbers_keep_their_digits() -> None:
    eighth = (1 + 1j) * 0.5**0.5
    np.testing.assert_allclose(run("pow_scalar", np.array(1e-200j), exponent=0.5), 1e-100 * eighth, 1e-15)
    np.testing.assert_allclose(run("pow_scalar", np.array(1e-200j), exponent=-0.5), 1e100 * eighth.conjugate(), 1e-15)


def test_negative_powers_of_infinity_are_zero() -> None:
    infinite = np.array([complex(np.inf), complex(-np.inf), complex(0, np.inf)])
    for exponent in (-1, -2):
        np.testing.assert_array_equal(run("pow_scalar", infinite, exponent=exponent), np.zeros(3))
