"""Fourier transforms against their sums and NumPy's, and gradients against Parseval's theorem and their matrices."""

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
CLOSE = {"float32": 2e-6, "float64": 4e-15}


def drawn(*shape: int, dtype: str = "complex128", seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    found: Array = np.asarray(x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x, dtype)
    return found


def matrix(n: int, sign: int = -1) -> Array:
    """The sums, from whole numbers: exp(2πi jk / n)."""
    found: Array = np.exp(sign * 2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n)
    return found


def close(found: Array, wanted: Array, most: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=most)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 12, 17, 31, 64, 101, 257])
def test_they_are_their_sums(n: int) -> None:
    x, real = drawn(3, n), drawn(3, n, dtype="float64")
    most = 3e-14 * n
    close(run("fft", x), x @ matrix(n), most)
    close(run("ifft", x), x @ matrix(n, 1) / n, most)
    half = (real @ matrix(n))[:, : n // 2 + 1]
    close(run("rfft", real), half, most)
    close(run("irfft", half, axes=(1,), sizes=(n,)), real, most)


REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
OPERANDS = [("rfft", d) for d in REAL] + [(name, d) for name in ("fft", "ifft", "irfft") for d in REAL + COMPLEX]


@pytest.mark.parametrize(("name", "dtype"), OPERANDS)
@pytest.mark.parametrize("norm", NORMS)
def test_several_axes_cut_and_padded_as_numpys(name: str, norm: str, dtype: str) -> None:
    x, theirs = drawn(4, 5, 6, dtype=dtype), getattr(FFT, f"{name}n")
    for axes, sizes in product([(2,), (0, 2), (2, 1), (1, 2, 0)], [False, True]):
        wanted_sizes = tuple(n for n, _ in zip((7, 3, 5), axes, strict=False)) if sizes else None
        found = run(name, x, axes=axes, norm=norm, **({"sizes": wanted_sizes} if sizes else {}))
        wanted = theirs(x, s=wanted_sizes, axes=axes, norm=norm)
        assert found.dtype == wanted.dtype
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=10 * scale * CLOSE[x.real.dtype.name])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_gradients_are_products_with_the_adjoint_matrix(norm: str, n: int) -> None:
    """Of each entry of the Jacobian that NumPy's transforms of unit vectors have."""
    z, x, g = drawn(n), drawn(n, dtype="float64"), drawn(n, seed=1)
    columns = FFT.fft(np.eye(n), norm=norm).T
    np.testing.assert_allclose(grads("fft", z, wrt=[0], cotangent=g, norm=norm)[1][0], columns.conj().T @ g, atol=1e-13)
    np.testing.assert_allclose(grads("fft", x, cotangent=g, norm=norm)[1][0], (columns.conj().T @ g).real, atol=1e-13)
    m = n // 2 + 1
    half = FFT.rfft(np.eye(n), norm=norm).T
    wanted = (half.conj().T @ g[:m]).real
    np.testing.assert_allclose(grads("rfft", x, cotangent=g[:m], norm=norm)[1][0], wanted, atol=1e-13)
    by_re = FFT.irfft(np.eye(m), n, norm=norm).T
    by_im = FFT.irfft(1j * np.eye(m), n, norm=norm).T
    wanted = by_re.T @ x + 1j * (by_im.T @ x)
    found = grads("irfft", z[:m], wrt=[0], cotangent=x, axes=(0,), sizes=(n,), norm=norm)[1][0]
    np.testing.assert_allclose(found, wanted, atol=1e-13)


@pytest.mark.parametrize("n", [6, 7])
def test_ends_have_no_imaginary_part(n: int) -> None:
    """Neither in the value nor in the gradient, on one axis and after another."""
    for axes, shape in (((0,), (n // 2 + 1,)), ((0, 1), (3, n // 2 + 1))):
        z = drawn(*shape)
        ends = np.zeros(shape, complex)
        ends[..., 0] = 5j
        if n % 2 == 0:
            ends[..., -1] = -3j
        attrs: dict[str, Any] = {"axes": axes, "sizes": (*shape[:-1], n)}
        if len(axes) == 1:
            np.testing.assert_array_equal(run("irfft", z + ends, **attrs), run("irfft", z, **attrs))
        g = drawn(*shape[:-1], n, dtype="float64", seed=2)
        found = grads("irfft", z, wrt=[0], cotangent=g, **attrs)[1][0]
        if len(axes) == 1:
            assert not found[ends != 0].imag.any()
        np.testing.assert_allclose(
            np.vdot(found, ends).real, np.sum(g * FFT.irfftn(ends, attrs["sizes"], axes=axes)), atol=1e-12
        )


def test_the_kernel_of_other_devices_leaves_them_out_too() -> None:
    op = InverseRealFft()
    for axes, sizes, extents in (((0, 1), (3, 6), (3, 6)), ((1,), (7,), (3, 7)), ((1, 0), (4, 5), (5, 4))):
        z, out = drawn(3, 4), np.empty(extents)
        InverseRealFft.forward.general(op, RunContext(np), z, out=out, axes=axes, sizes=sizes, norm="ortho")
        np.testing.assert_allclose(out, FFT.irfftn(z, sizes, axes=axes, norm="ortho"), atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9, 12])
def test_a_library_that_keeps_imaginary_parts_is_given_none_where_none_count(n: int) -> None:
    class Library:
        """Hands on what it is given."""

        @staticmethod
        def irfft(z: Array, *_: Any, **__: Any) -> Array:
            return z

    z = drawn(2, n // 2 + 1)
    counted = np.ones(z.shape[1], bool)
    counted[0] = False
    if 2 * (n // 2) == n:
        counted[n // 2] = False
    found = InverseRealFft().transform(Library, z, (1,), (n,), "backward")
    np.testing.assert_array_equal(found, np.where(counted, z, z.real))


def test_narrow_dtypes() -> None:
    half = drawn(6, dtype="float64").astype("float16")
    assert run("fft", half).dtype == run("rfft", half).dtype == np.complex64
    assert run("irfft", half).dtype == np.float16
    np.testing.assert_allclose(run("rfft", half), FFT.rfft(half.astype("float32")), rtol=1e-6)
    assert run("fft", np.arange(3)).dtype == np.complex128
    assert run("irfft", np.array([True, False])).dtype == np.float64


def test_the_sum_of_squares_is_that_of_the_spectrum() -> None:
    """Parseval: Σ |y|² = n Σ |x|², and the gradient 2 n x."""
    z = np.array([1 + 2j, 3 - 1j])
    y, (found,) = grads("fft", z, wrt=[0], cotangent=2 * FFT.fft(z))
    assert np.sum(np.abs(y) ** 2) == pytest.approx(30)
    np.testing.assert_allclose(found, 4 * z)


@pytest.mark.parametrize(
    ("attrs", "says"),
    [
        ({"sizes": (3,)}, "attribute sizes needs axes, one for each"),
        ({"axes": (0,), "sizes": (3, 4)}, "attribute sizes must have length 1, as axes, but has length 2"),
        ({"axes": (0, -2)}, "axes names an axis twice"),
        ({"axes": (2,)}, "axes must be between -2 and 1, but is 2"),
        ({"axes": (0,), "sizes": (0,)}, "sizes"),
        ({"norm": "both"}, "norm"),
    ],
)
def test_wrong_attributes(attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(BadAttribute, match=says):
        run("fft", drawn(2, 3), **attrs)


@pytest.mark.parametrize(
    ("name", "shape", "attrs", "says"),
    [
        ("fft", (), {}, "fft needs an axis to transform"),
        ("fft", (2,), {"axes": ()}, "fft needs an axis to transform"),
        ("rfft", (2, 0), {}, "rfft needs a point on each axis, or sizes; the operand has 0 on axis 1"),
        ("irfft", (2, 1), {}, "irfft needs a point on each axis, or sizes; the operand has 1 on axis 1"),
    ],
)
def test_no_points(name: str, shape: tuple[int, ...], attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(ShapeMismatch, match=says) as caught:
        run(name, np.zeros(shape), **attrs)
    assert caught.value.operand == 0


def test_no_entries_are_padded_to_zeros() -> None:
    np.testing.assert_array_equal(run("rfft", np.zeros((2, 0)), axes=(1,), sizes=(4,)), np.zeros((2, 3)))


def test_a_transform_has_the_threads_of_its_executor() -> None:
    assert NumPyExecutor(threads=3).context().threads == 3
    x = drawn(64, 1024)
    found = []
    for threads in (1, 2):
        out, run_context = np.empty_like(x), NumPyExecutor(threads=threads).context()
        Fft().forward(run_context, x, out=out, axes=(1,), sizes=(1024,), norm="backward")
        found.append(out)
    np.testing.assert_array_equal(found[0], found[1])
