"""Matrices large enough for one LAPACK call each: against NumPy, and matrices without a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.compiler.plan import make_plan
from engine.ir.errors import DeadlineTooNear
from engine.ir.passes import optimise
from engine.ir.run_context import Deadline, RunContext
from engine.ops.linalg import lapack
from tests.contract.cases import EXECUTOR, assert_planned_peak_holds
from tests.engine.ops.matrices import evaluate
from tests.engine.ops.run import run

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(17)
N = 70


def regular(*batch: int, n: int = N) -> Array:
    return RNG.normal(size=(*batch, n, n)) + 9 * np.eye(n)


def definite(*batch: int) -> Array:
    x = RNG.normal(size=(*batch, N, N))
    return x @ x.swapaxes(-1, -2) + N * np.eye(N)


def close(actual: Array, expected: Array, dtype: str = "float64") -> None:
    assert actual.dtype == dtype
    tolerance = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(actual, expected.astype(dtype), tolerance, tolerance * np.abs(expected).max())


@pytest.fixture(autouse=True)
def lapack_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the NumPy path, which is the reference here."""
    assert lapack.is_for_lapack((N, N))
    assert not lapack.is_for_lapack((N, 8, 8))
    monkeypatch.setattr("engine.ops.linalg.solve.answer_each", None)
    monkeypatch.setattr("engine.ops.linalg.solve.answer_each", None)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
@pytest.mark.parametrize("columns", [1, 3, 100])
def test_solve(dtype: str, columns: int) -> None:
    a, b = (10 * regular()).astype(dtype), (10 * RNG.normal(size=(N, columns))).astype(dtype)
    expected = np.linalg.solve(a.astype("float64"), b.astype("float64"))
    close(run("solve", a, b), expected, "float64" if dtype == "int32" else dtype)


def test_batch_axes_of_systems_broadcast() -> None:
    a, b = regular(2, 1), RNG.normal(size=(3, N, 2))
    close(run("solve", a, b), np.linalg.solve(a, b))
    close(run("solve", a[0, 0], b[0, :, 0]), np.linalg.solve(a[0, 0], b[0, :, 0]))
    assert run("solve", a, b[..., :0]).shape == (2, 3, N, 0)
    assert run("solve", a[:0], b).shape == (0, 3, N, 2)


@pytest.mark.parametrize("spoil", ["row", "column", "nan"])
def test_singular_matrix_does_not_affect_the_others(spoil: str) -> None:
    a, b = regular(3), RNG.normal(size=(3, N, 2))
    position = {"row": np.s_[1, 5], "column": np.s_[1, :, 5], "nan": np.s_[1, 5, 7]}[spoil]
    a[position] = np.nan if spoil == "nan" else 0
    y = run("solve", a, b)
    assert np.isnan(y[1]).all()
    close(y[[0, 2]], np.linalg.solve(a[[0, 2]], b[[0, 2]]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
def test_cholesky(dtype: str) -> None:
    x = definite(2).astype(dtype)
    tilt = RNG.integers(-3, 3, x.shape).astype(dtype)
    tilted = x + tilt - tilt.swapaxes(-1, -2)
    symmetric = (tilted.astype("float64") + tilted.swapaxes(-1, -2)) / 2
    actual = run("cholesky", tilted)
    close(actual, np.linalg.cholesky(symmetric), "float64" if dtype == "int32" else dtype)
    assert not np.triu(actual, 1).any()


@pytest.mark.parametrize("wrong", [-1.0, 0.0])
def test_indefinite_matrix_does_not_affect_the_others(wrong: float) -> None:
    x = definite(3)
    x[1, 9, 9] = wrong
    y = run("cholesky", x)
    assert np.isnan(y[1]).all()
    close(y[[0, 2]], np.linalg.cholesky(x[[0, 2]]))


def test_nan_propagates_to_dependent_entries_only() -> None:
    """Earlier entries stay valid, as for small matrices."""
    x = definite()
    x[9, 9] = np.nan
    y = run("cholesky", x)
    close(y[:9], np.linalg.cholesky(np.nan_to_num(x, nan=N**2))[:9])
    assert np.isnan(y[9:, 9]).all()
    assert np.isnan(np.diag(y)[9:]).all()


def test_operands_are_not_modified() -> None:
    """LAPACK overwrites copies, even of a float64 operand with the right layout."""
    a, x, b = regular().T.copy().T, definite(), RNG.normal(size=(1, N)).T
    before = [each.copy() for each in (a, x, b)]
    run("solve", a, b)
    run("cholesky", x)
    for each, original in zip((a, x, b), before, strict=True):
        assert each.tobytes() == original.tobytes()


def tall(*batch: int, dtype: str = "float64") -> Array:
    x = RNG.normal(size=(*batch, N + 6, N))
    return (x + 1j * RNG.normal(size=x.shape) if dtype.startswith("complex") else x).astype(dtype)


def qr(x: Array) -> list[Array]:
    def write(v: Value) -> list[Value]:
        both = v.qr()
        return [both.output(0), both.output(1)]

    return evaluate(write, x)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "complex64"])
@pytest.mark.parametrize("turned", [False, True])
def test_qr(monkeypatch: pytest.MonkeyPatch, dtype: str, turned: bool) -> None:
    monkeypatch.setattr("engine.ops.linalg.qr.factorize", None)
    x = tall(2, dtype=dtype)
    x = x.swapaxes(-1, -2) if turned else x
    wide = x.astype("complex128" if x.dtype.kind == "c" else "float64")
    for actual, expected in zip(qr(x), np.linalg.qr(wide), strict=True):
        assert actual.dtype == dtype
        tolerance = {"float64": 1e-12, "complex128": 1e-12, "float16": 1e-3}.get(dtype, 1e-6)
        np.testing.assert_allclose(actual, expected, tolerance, tolerance * np.abs(expected).max())
    assert not np.tril(qr(x)[1], -1).any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_non_finite_matrix_does_not_affect_the_others(wrong: float) -> None:
    x = tall(3)
    x[1, 5, 7] = wrong
    for actual, expected in zip(qr(x), np.linalg.qr(np.nan_to_num(x)), strict=True):
        assert np.isnan(actual[1]).all()
        close(actual[[0, 2]], expected[[0, 2]])


def test_qr_of_numbers_whose_sum_overflows() -> None:
    x = np.abs(tall()) * 1e306
    assert np.isfinite(x).all()
    with np.errstate(over="ignore"):
        assert np.isinf(x.sum())
    q, r = qr(x)
    np.testing.assert_allclose(q @ (r / 1e306), x / 1e306, 0, 1e-12)


def test_work_that_would_miss_the_deadline_is_not_started() -> None:
    x = np.broadcast_to(tall(), (10_000_000, N + 6, N))
    with pytest.raises(DeadlineTooNear):
        lapack.qr_each(RunContext(np, Deadline(20.0)), x, np.empty((0, N + 6, N)), np.empty((0, N, N)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 400, 150), (2, 150, 400), (3, 300, 300)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_factors_stay_within_planned_memory(shape: tuple[int, ...], dtype: str) -> None:
    """SciPy's functions allocate work arrays through NumPy, so tracemalloc sees them."""
    x = RNG.normal(size=shape).astype(dtype)
    builder = Builder(registry())
    both = builder.leaf(TensorType.of(x), 0).qr()
    plan = make_plan(optimise(builder.graph([both.output(0), both.output(1)])), Limits())
    EXECUTOR.run(plan, {0: x})
    assert_planned_peak_holds(plan, {0: x})
