"""Functions of complex numbers against mpmath: values, and gradients, which are conjugates of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.engine.ops.run import grads, run

POINTS = np.array([0.3 + 0.2j, -1.5 + 2j, 2 - 3j, -0.7 - 0.1j, 1e-8 + 1e-9j, 5 + 0.5j])
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "reciprocal": lambda z: 1 / z,
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "square": lambda z: z * z,
    "abs": mpmath.fabs,
    "angle": mpmath.arg,
}
HOLOMORPHIC = [op for op in FUNCTIONS if op not in ("abs", "angle")]


@pytest.mark.parametrize("op", FUNCTIONS)
def test_values_match_mpmath(op: str) -> None:
    expected = [complex(FUNCTIONS[op](mpmath.mpc(z))) for z in POINTS]
    np.testing.assert_allclose(run(op, POINTS), expected, rtol=4e-15, atol=0)


@pytest.mark.parametrize("op", HOLOMORPHIC)
def test_gradients_are_conjugates_of_derivatives(op: str) -> None:
    expected = [complex(mpmath.conj(mpmath.diff(FUNCTIONS[op], mpmath.mpc(z)))) for z in POINTS[:4]]
    _, (gradient,) = grads(op, POINTS[:4], wrt=[0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-10)


@pytest.mark.parametrize("z", [-800 + 1j, 800 - 2j, -745 + 0.5j])
def test_sigmoid_is_accurate_in_its_tails(z: complex) -> None:
    expected = complex(FUNCTIONS["sigmoid"](mpmath.mpc(z)))
    assert abs(run("sigmoid", np.array([z]))[0] - expected) <= 1e-13 * abs(expected) + 1e-323


@pytest.mark.parametrize("exponent", [-3.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 7.0, 1.5])
def test_powers_match_mpmath(exponent: float) -> None:
    expected = [complex(mpmath.mpc(z) ** mpmath.mpf(exponent)) for z in POINTS]
    np.testing.assert_allclose(run("pow_scalar", POINTS, exponent=exponent), expected, rtol=4e-14)


@pytest.mark.parametrize("op", [*FUNCTIONS, "conj", "real", "imag"])
def test_complex64_matches_complex128(op: str) -> None:
    narrow = run(op, POINTS.astype("complex64"))
    assert narrow.dtype in (np.complex64, np.float32)
    np.testing.assert_allclose(narrow, run(op, POINTS), rtol=3e-6, atol=1e-7)
