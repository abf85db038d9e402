"""Fourier transforms against DFT sums and NumPy; gradients against Parseval's theorem and adjoint matrices."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine.ir.errors import BadAttribute, ShapeMismatch
from engine.ir.run_context import RunContext
from engine.ops.complex_numbers.fft import Fft, InverseRealFft
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.ops.run import grads, run

Array = np.ndarray[Any, Any]
FFT: Any = np.fft
NORMS = ("backward", "ortho", "forward")
TOLERANCES = {"float32": 2e-6, "float64": 4e-15}


def random_array(*shape: int, dtype: str = "complex128", seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    result: Array = np.asarray(x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x, dtype)
    return result


def dft_matrix(n: int, sign: int = -1) -> Array:
    """The DFT matrix, from integer exponents: exp(±2πi jk / n)."""
    result: Array = np.exp(sign * 2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n)
    return result


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 12, 17, 31, 64, 101, 257])
def test_transforms_match_dft_sums(n: int) -> None:
    x, real = random_array(3, n), random_array(3, n, dtype="float64")
    tolerance = 3e-14 * n
    assert_close(run("fft", x), x @ dft_matrix(n), tolerance)
    assert_close(run("ifft", x), x @ dft_matrix(n, 1) / n, tolerance)
    half = (real @ dft_matrix(n))[:, : n // 2 + 1]
    assert_close(run("rfft", real), half, tolerance)
    assert_close(run("irfft", half, axes=(1,), sizes=(n,)), real, tolerance)


REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
OPERANDS = [("rfft", d) for d in REAL] + [(name, d) for name in ("fft", "ifft", "irfft") for d in REAL + COMPLEX]


@pytest.mark.parametrize(("name", "dtype"), OPERANDS)
@pytest.mark.parametrize("norm", NORMS)
def test_axes_and_sizes_match_numpy(name: str, norm: str, dtype: str) -> None:
    x, reference = random_array(4, 5, 6, dtype=dtype), getattr(FFT, f"{name}n")
    for axes, sizes in product([(2,), (0, 2), (2, 1), (1, 2, 0)], [False, True]):
        requested = tuple(n for n, _ in zip((7, 3, 5), axes, strict=False)) if sizes else None
        actual = run(name, x, axes=axes, norm=norm, **({"sizes": requested} if sizes else {}))
        expected = reference(x, s=requested, axes=axes, norm=norm)
        assert actual.dtype == expected.dtype
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=10 * scale * TOLERANCES[x.real.dtype.name])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_gradients_are_products_with_the_adjoint_matrix(norm: str, n: int) -> None:
    """The Jacobian holds NumPy's transforms of unit vectors."""
    z, x, g = random_array(n), random_array(n, dtype="float64"), random_array(n, seed=1)
    columns = FFT.fft(np.eye(n), norm=norm).T
    np.testing.assert_allclose(grads("fft", z, wrt=[0], cotangent=g, norm=norm)[1][0], columns.conj().T @ g, atol=1e-13)
    np.testing.assert_allclose(grads("fft", x, cotangent=g, norm=norm)[1][0], (columns.conj().T @ g).real, atol=1e-13)
    m = n // 2 + 1
    half = FFT.rfft(np.eye(n), norm=norm).T
    expected = (half.conj().T @ g[:m]).real
    np.testing.assert_allclose(grads("rfft", x, cotangent=g[:m], norm=norm)[1][0], expected, atol=1e-13)
    real_columns = FFT.irfft(np.eye(m), n, norm=norm).T
    imag_columns = FFT.irfft(1j * np.eye(m), n, norm=norm).T
    expected = real_columns.T @ x + 1j * (imag_columns.T @ x)
    actual = grads("irfft", z[:m], wrt=[0], cotangent=x, axes=(0,), sizes=(n,), norm=norm)[1][0]
    np.testing.assert_allclose(actual, expected, atol=1e-13)


@pytest.mark.parametrize("n", [6, 7])
def test_irfft_ignores_imaginary_parts_at_both_ends(n: int) -> None:
    """In the value and in the gradient, on one axis and on two."""
    for axes, shape in (((0,), (n // 2 + 1,)), ((0, 1), (3, n // 2 + 1))):
        z = random_array(*shape)
        ends = np.zeros(shape, complex)
        ends[..., 0] = 5j
        if n % 2 == 0:
            ends[..., -1] = -3j
        attrs: dict[str, Any] = {"axes": axes, "sizes": (*shape[:-1], n)}
        if len(axes) == 1:
            np.testing.assert_array_equal(run("irfft", z + ends, **attrs), run("irfft", z, **attrs))
        g = random_array(*shape[:-1], n, dtype="float64", seed=2)
        actual = grads("irfft", z, wrt=[0], cotangent=g, **attrs)[1][0]
        if len(axes) == 1:
            assert not actual[ends != 0].imag.any()
        np.testing.assert_allclose(
            np.vdot(actual, ends).real, np.sum(g * FFT.irfftn(ends, attrs["sizes"], axes=axes)), atol=1e-12
        )


def test_irfft_general_kernel_matches_numpy() -> None:
    op = InverseRealFft()
    for axes, sizes, extents in (((0, 1), (3, 6), (3, 6)), ((1,), (7,), (3, 7)), ((1, 0), (4, 5), (5, 4))):
        z, out = random_array(3, 4), np.empty(extents)
        InverseRealFft.forward.general(op, RunContext(np), z, out=out, axes=axes, sizes=sizes, norm="ortho")
        np.testing.assert_allclose(out, FFT.irfftn(z, sizes, axes=axes, norm="ortho"), atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 12])
def test_irfft_passes_real_ends_to_the_library(n: int) -> None:
    class Library:
        """A library that returns its input."""

        @staticmethod
        def irfft(z: Array, *_: Any, **__: Any) -> Array:
            return z

    z = random_array(2, n // 2 + 1)
    counted = np.ones(z.shape[1], bool)
    counted[0] = False
    if 2 * (n // 2) == n:
        counted[n // 2] = False
    actual = InverseRealFft().transform(Library, z, (1,), (n,), "backward")
    np.testing.assert_array_equal(actual, np.where(counted, z, z.real))


def test_narrow_dtypes() -> None:
    half = random_array(6, dtype="float64").astype("float16")
    assert run("fft", half).dtype == run("rfft", half).dtype == np.complex64
    assert run("irfft", half).dtype == np.float16
    np.testing.assert_allclose(run("rfft", half), FFT.rfft(half.astype("float32")), rtol=1e-6)
    assert run("fft", np.arange(3)).dtype == np.complex128
    assert run("irfft", np.array([True, False])).dtype == np.float64


def test_parseval() -> None:
    """Parseval: Σ |y|² = n Σ |x|², and the gradient 2 n x."""
    z = np.array([1 + 2j, 3 - 1j])
    y, (actual,) = grads("fft", z, wrt=[0], cotangent=2 * FFT.fft(z))
    assert np.sum(np.abs(y) ** 2) == pytest.approx(30)
    np.testing.assert_allclose(actual, 4 * z)


@pytest.mark.parametrize("sizes", [(3,), (5,), (3, 4), (2, 5)])
def test_sizes_without_axes_are_of_the_last_axes(sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    for name, expected in (
        ("fft", FFT.fftn(x, s=sizes, axes=range(-len(sizes), 0))),
        ("rfft", FFT.rfftn(x, s=sizes, axes=range(-len(sizes), 0))),
    ):
        np.testing.assert_allclose(run(name, x, sizes=sizes), expected, atol=1e-13)


@pytest.mark.parametrize(
    ("attrs", "says"),
    [
        ({"sizes": (3, 4, 5)}, "attribute sizes must have at most 2 sizes, one for each axis, but has 3"),
        ({"axes": (0,), "sizes": (3, 4)}, "attribute sizes must have length 1, like axes, but has length 2"),
        ({"axes": (0, -2)}, "axes names an axis twice"),
        ({"axes": (2,)}, "axes must be between -2 and 1, but is 2"),
        ({"axes": (0,), "sizes": (0,)}, "sizes"),
        ({"norm": "both"}, "norm"),
    ],
)
def test_invalid_attributes_are_refused(attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(BadAttribute, match=says):
        run("fft", random_array(2, 3), **attrs)


@pytest.mark.parametrize(
    ("name", "shape", "attrs", "says"),
    [
        ("fft", (), {}, "fft needs an axis to transform"),
        ("fft", (2,), {"axes": ()}, "fft needs an axis to transform"),
        ("rfft", (2, 0), {}, "rfft needs at least one point on each axis, or sizes; the operand has 0 on axis 1"),
        ("irfft", (2, 1), {}, "irfft needs at least one point on each axis, or sizes; the operand has 1 on axis 1"),
    ],
)
def test_axes_without_points_are_refused(name: str, shape: tuple[int, ...], attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(ShapeMismatch, match=says) as caught:
        run(name, np.zeros(shape), **attrs)
    assert caught.value.operand == 0


def test_empty_rows_are_padded_to_zeros() -> None:
    np.testing.assert_array_equal(run("rfft", np.zeros((2, 0)), axes=(1,), sizes=(4,)), np.zeros((2, 3)))


def test_transform_uses_the_threads_of_its_executor() -> None:
    assert NumPyExecutor(threads=3).context().threads == 3
    x = random_array(64, 1024)
    results = []
    for threads in (1, 2):
        out, run_context = np.empty_like(x), NumPyExecutor(threads=threads).context()
        Fft().forward(run_context, x, out=out, axes=(1,), sizes=(1024,), norm="backward")
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
