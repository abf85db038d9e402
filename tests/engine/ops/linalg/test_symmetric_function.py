"""Functions of symmetric matrices: exact at equal eigenvalues to second order, otherwise equal to `eigh`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.analysis.export import PublicCopy
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ops.linalg.symmetric_function import symmetric_slope
from tests.contract.cases import EXECUTOR
from tests.engine.ops.linalg.test_eigh import rotated, symmetric
from tests.engine.ops.matrices import evaluate, real
from tests.engine.ops.run import Array, grads, run

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda w: 1 / np.sqrt(w),
    "log": np.log,
    "exp": np.exp,
}
SPECTRA = {
    "apart": [3.0, 2.0, 0.5],
    "two equal": [2.0, 2.0, 1.0],
    "all equal": [2.0, 2.0, 2.0],
    "nearly equal": [2.0, 2.0 + 1e-9, 1.0],
    "far apart": [1e3, 1.0, 1e-3],
}
EACH_FUNCTION = pytest.mark.parametrize("function", FUNCTIONS)
EACH_SPECTRUM = pytest.mark.parametrize("values", SPECTRA.values(), ids=SPECTRA)


def exact_derivatives(function: str, values: list[float], along: Array) -> tuple[Array, Array]:
    """First and second derivative at a rotated diagonal matrix along a direction, from differences in 80 digits.

    The matrix is the one rounded to doubles.
    """
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        apply = (lambda w: 1 / mpmath.sqrt(w)) if function == "rsqrt" else getattr(mpmath, function)
        step = mpmath.mpf(10) ** -20

        def value_at(t: int) -> Any:
            moved = mpmath.matrix(rotated(values).tolist()) + mpmath.matrix(along.tolist()) * (t * step)
            w, v = mpmath.eigsy((moved + moved.T) / 2)
            return v * mpmath.diag([apply(each) for each in w]) * v.T

        before, middle, after = value_at(-1), value_at(0), value_at(1)
        first, second = (after - before) / (2 * step), (after - 2 * middle + before) / step**2
        return np.array(first.tolist(), float), np.array(second.tolist(), float)


@EACH_FUNCTION
@EACH_SPECTRUM
def test_values(function: str, values: list[float]) -> None:
    x, tilt = rotated(values) / 10, real(3, 3)
    w, v = np.linalg.eigh(x)
    expected = (v * FUNCTIONS[function](w)) @ v.T
    actual = run("symmetric_function", x + tilt - tilt.T, function=function)
    np.testing.assert_allclose(actual, expected, 1e-9, 1e-9 * np.abs(expected).max())


@EACH_FUNCTION
@EACH_SPECTRUM
def test_first_and_second_derivatives(function: str, values: list[float]) -> None:
    if function == "exp":
        values = [min(value, 30.0) for value in values]
    along, weights = symmetric(3, 3) * min(values), symmetric(3, 3)
    first, second = exact_derivatives(function, values, along)

    def slopes(v: Value) -> list[Value]:
        y = (v.symmetric_function(function=function) * v.builder.constant(weights)).sum()
        derivatives = []
        for _ in range(2):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(along)).sum()
            derivatives.append(y)
        return derivatives

    actual = evaluate(slopes, rotated(values))
    # some of the summed terms cancel
    np.testing.assert_allclose(actual[0], (first * weights).sum(), 1e-9, 1e-9 * np.abs(first).max())
    np.testing.assert_allclose(actual[1], (second * weights).sum(), 1e-8, 1e-8 * np.abs(second).max())


@EACH_FUNCTION
def test_third_derivatives_at_equal_eigenvalues(function: str) -> None:
    """Along the identity: f‴ of each eigenvalue."""
    third = {"sqrt": 3 / 8 * 2**-2.5, "rsqrt": -15 / 8 * 2**-3.5, "log": 2 / 8, "exp": np.exp(2.0)}[function]

    def slope(v: Value) -> list[Value]:
        y = (v.symmetric_function(function=function) * v.builder.constant(np.eye(3))).sum()
        for _ in range(3):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(np.eye(3))).sum()
        return [y]

    (actual,) = evaluate(slope, 2 * np.eye(3))
    np.testing.assert_allclose(actual, 3 * third, 1e-9)


@EACH_FUNCTION
def test_matches_eigh_at_distinct_eigenvalues(function: str) -> None:
    x, g = rotated([3.0, 2.0, 0.5]), real(3, 3)
    _, (actual,) = grads("symmetric_function", x, function=function, cotangent=g)

    def by_eigh(a: Value) -> list[Value]:
        both = a.eigh()
        w, v = both.output(0), both.output(1)
        w = 1.0 / w.sqrt() if function == "rsqrt" else getattr(w, function)()
        y = ((v * w) @ v.transpose() * a.builder.constant(g)).sum()
        return vjp_or_zeros(a.builder, [(y, y.full_like(1.0))], [a])

    np.testing.assert_allclose(actual, evaluate(by_eigh, x)[0], 1e-12, 1e-13)
    np.testing.assert_allclose(actual, actual.T, 1e-12)


@pytest.mark.parametrize("function", ["sqrt", "rsqrt", "log"])
def test_invalid_matrix_does_not_affect_the_others(function: str) -> None:
    good = rotated([2.0, 2.0, 1.0])
    batch = np.stack([good, rotated([2.0, -1.0, 1.0]), np.full((3, 3), np.nan), np.diag([np.inf, 1, 1]), good])
    actual, (slope,) = grads("symmetric_function", batch, function=function)
    for y in (actual, slope):
        assert np.isnan(y[1:4]).all()
        assert np.isfinite(y[[0, 4]]).all()
    zero = run("symmetric_function", np.diag([1.0, 0.0]), function=function)
    assert np.isnan(zero).all() == (function != "sqrt")


def test_square_root_of_a_singular_matrix() -> None:
    actual, (slope,) = grads("symmetric_function", np.diag([4.0, 0.0]), function="sqrt", cotangent=np.diag([1.0, 0.0]))
    np.testing.assert_array_equal(actual, np.diag([2.0, 0.0]))
    assert not np.isfinite(slope).all()


@pytest.mark.parametrize("function", ["sqrt", "log"])
@EACH_SPECTRUM
def test_slope_decomposes_into_public_ops(function: str, values: list[float]) -> None:
    x, e = rotated(values), real(3, 3)
    builder = Builder(registry())
    point, along = (builder.leaf(TensorType.of(a), i) for i, a in enumerate((x, e)))
    graph = builder.graph([symmetric_slope(point, along, function)])
    public = Builder(registry())
    copied = PublicCopy(public)
    for i, node in enumerate(graph.nodes):
        copied.copy(i, node)
    decomposed = public.graph([copied.values[graph.outputs[0]]])
    assert not any(node.op.internal for node in decomposed.nodes)
    actual, expected = (EXECUTOR.run(make_plan(each, Limits()), {0: x, 1: e})[0] for each in (decomposed, graph))
    np.testing.assert_allclose(actual, expected, 1e-12, 1e-12 * np.abs(expected).max())


def test_dtypes() -> None:
    x = np.diag([40_000.0, 1.0]).astype("float16")
    actual, (slope,) = grads("symmetric_function", x, function="sqrt")
    assert (actual.dtype, slope.dtype) == (np.float16, np.float16)
    np.testing.assert_array_equal(np.diag(actual), [200, 1])
    np.testing.assert_allclose(np.diag(slope).astype(float), [1 / 400, 0.5], 1e-3)
    assert run("symmetric_function", np.eye(2, dtype=int), function="exp").dtype == np.float64
