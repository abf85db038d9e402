"""lgamma, digamma, polygamma, erfinv, log_ndtr and betaln against values computed in 80 digits."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, Value
from engine.compiler.plan import make_plan
from engine.ir.errors import BadAttribute
from engine.ir.passes import optimise
from engine.ops import registry
from engine.ops.elementwise.erf import _inverse_mills_ratio
from engine.ops.elementwise.gamma import _asymptotic_difference, _betaln, _betaln_everywhere, _stirling_rest
from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import EXECUTOR, ON_GPU, error, grads, run
from tests.engine.ops.special_values import BETALN, DIGAMMA, ERFINV, HIGH_ORDERS, LGAMMA, LOG_NDTR, POLYGAMMA
from tests.engine.printers import COMPILED

# These tests run SciPy on the device of the tests.
on_cpu = pytest.mark.skipif(ON_GPU, reason="SciPy is not where the GPU is")
Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan
EPS = 2.0**-52


def columns(table: Any) -> list[Array]:
    return [np.array(column) for column in zip(*table, strict=True)]


def assert_within(units: float, result: Any, exact: Any, of: Any = 0) -> None:
    """Assert an error of at most `units` in the last place of the exact value, or of `of` if that is larger.

    On a GPU the functions are CuPy's, and accurate to about 8 digits.
    """
    result, exact = np.asarray(result), np.asarray(exact)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(result[~finite], exact[~finite])
    result, exact = result[finite], exact[finite]
    scale, deviation = np.spacing(np.maximum(np.abs(exact), of)), np.abs(result - exact)
    allowed = np.maximum(1e-8 * np.abs(exact), 1e-12) if ON_GPU else units * scale
    assert (deviation <= allowed).all(), (deviation / scale).tolist()


# ---------------------------------------------------------------- values


def test_lgamma() -> None:
    x, y, slope = columns(LGAMMA)
    value, (gradient,) = grads("lgamma", x)
    assert_within(3, value, y)
    assert_within(4, gradient, slope)


@pytest.mark.parametrize("root", [1.0, 2.0])
def test_lgamma_is_accurate_near_its_zeros(root: float) -> None:
    """Near its zeros lgamma is linear: −γ (x − 1) and (1 − γ) (x − 2)."""
    x = root + np.array([-(2.0**-40), -(2.0**-45), 2.0**-45, 2.0**-40])
    slope, bend = derivatives("digamma", np.full(4, root), by=0) if not ON_GPU else (NAN, NAN)
    if not ON_GPU:
        assert_within(3, run("lgamma", x), (x - root) * (slope + (x - root) * bend / 2))
    assert run("lgamma", np.array([root]))[0] == 0


def test_lgamma_near_its_negative_zeros() -> None:
    """Accurate to an absolute error, not a relative one."""
    x = np.array([-2.457024738220801, -2.747682646727413, -3.1435808883499798])
    assert np.abs(run("lgamma", x)).max() < 1e-14


def test_digamma() -> None:
    x, y, slope = columns(DIGAMMA)
    value, (gradient,) = grads("digamma", x)
    assert_within(10, value, y)
    assert_within(10, gradient, slope)


def test_digamma_at_its_zeros() -> None:
    x = np.array([1.4616321449683623, -0.5040830082644554, -1.5734984731623904, -2.610720868444145])
    assert np.abs(run("digamma", x)).max() < 1e-14


@pytest.mark.parametrize("order", list(POLYGAMMA))
def test_polygamma(order: int) -> None:
    x, y, slope = columns(POLYGAMMA[order])
    value, (gradient,) = grads("polygamma", x, order=order)
    assert_within(10, value, y)
    assert_within(10, gradient, slope)


@pytest.mark.parametrize(("order", "x", "y"), HIGH_ORDERS)
def test_polygamma_of_high_order(order: int, x: float, y: float) -> None:
    assert_within(10, run("polygamma", np.array([x]), order=order), [y])


def test_polygamma_of_order_zero_is_digamma() -> None:
    x = columns(DIGAMMA)[0]
    np.testing.assert_array_equal(run("polygamma", x, order=0), run("digamma", x))


def test_polygamma_far_below_zero_terminates() -> None:
    """π² / sin²(πx) − 1/|x| and smaller terms; a sum starting at x would not end."""
    x = np.array([-1e9 - 0.25, -1e15 - 0.25])
    assert_within(10, run("polygamma", x, order=1), 2 * np.pi**2 + 1 / x)


def test_polygamma_between_the_poles_of_even_order() -> None:
    """Both sides cancel: the error is relative to the larger one."""
    x = np.array([-29.499571040592812])
    assert_within(10, run("polygamma", x, order=2), [0.08245846006], of=17 * 1e5)
    assert_within(10, run("polygamma", x, order=2), [0.08245846], of=1e8)


def test_erfinv() -> None:
    x, y, *_ = columns(ERFINV)
    assert_within(3, run("erfinv", x), y)


def test_log_ndtr() -> None:
    x, y, *_ = columns(LOG_NDTR)
    assert_within(4, run("log_ndtr", x), y)


def test_betaln() -> None:
    a, b, y, *_ = columns(BETALN)
    assert_within(10, run("betaln", a, b), y, of=1)
    np.testing.assert_array_equal(run("betaln", a, b), run("betaln", b, a))


@on_cpu
def test_branchless_betaln_matches_betaln() -> None:
    """The formula for GPUs, run on NumPy; at ∞ it is −∞ next to positive numbers, and SciPy's value next to 0."""
    points = np.array([-1.5, 0.0, 1e-300, 0.5, 1.0, 1.5, 9.0, 10.0, 10.5, 30.0, 1e5, 1e300, INF])
    a, b = (np.ravel(x) for x in np.meshgrid(points, points))
    low, high = np.minimum(a, b), np.maximum(a, b)
    with np.errstate(all="ignore"):
        actual, expected = _betaln_everywhere(np, low, high), _betaln(low, high)
    assert_within(10, actual, expected, of=1)
    for betaln in (_betaln, partial(_betaln_everywhere, np)):
        with np.errstate(all="ignore"):
            at_infinity = betaln(points[1:-1], np.full(len(points) - 2, INF))
        np.testing.assert_array_equal(at_infinity, [INF, *[-INF] * (len(points) - 3)])


def test_betaln_of_integers() -> None:
    """1 / B(a, b) = b · (a + b − 1 choose b)."""
    a, b = np.meshgrid([1, 2, 9, 10, 11, 150], [1, 3, 10, 40, 200])
    pairs = [(int(m), int(n)) for m, n in zip(a.flat, b.flat, strict=True)]
    expected = [-math.log(n * math.comb(m + n - 1, n)) for m, n in pairs]
    actual = run("betaln", a, b)
    assert actual.dtype == np.float64
    assert_within(10, actual.ravel(), expected, of=1)


def bernoulli(count: int) -> list[Fraction]:
    """Return B₂, B₄, …, from Σ (m + 1 choose k) Bₖ = 0."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        numbers.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction()) / (m + 1))
    return numbers[2::2]


@on_cpu
@pytest.mark.parametrize("x", [0.5, 1.0, 3.0])
def test_series_of_betaln_is_stirlings_series(x: float) -> None:
    """Seven terms B₂ₖ / (2k (2k − 1) x²ᵏ⁻¹), DLMF 5.11.1, at small x, where every term matters."""
    expected = math.fsum(b / (2 * k * (2 * k - 1) * Fraction(x) ** (2 * k - 1)) for k, b in enumerate(bernoulli(7), 1))
    np.testing.assert_allclose(_stirling_rest(np.array([x])), [expected], 1e-14)


@pytest.mark.parametrize("b", [1e4, 9e5, 1e6, 1e7, 1e15])
def test_betaln_at_the_start_of_its_series(b: float) -> None:
    """At a = 10, where SciPy is up to 200,000 units off. B(10, b) = 9! / (b (b + 1) … (b + 9))."""
    expected = math.log(math.factorial(9)) - math.fsum(math.log(b + i) for i in range(10))
    assert_within(10, run("betaln", np.array([10.0]), np.array([b])), [expected])


# ---------------------------------------------------------------- derivatives


@on_cpu
@pytest.mark.parametrize(("op", "table"), [("lgamma", LGAMMA), ("digamma", DIGAMMA)])
def test_second_derivatives_are_polygamma_of_the_next_order(op: str, table: Any) -> None:
    x = columns(table)[0]
    order = {"lgamma": 1, "digamma": 2}[op]
    np.testing.assert_array_equal(derivatives(op, x)[2], run("polygamma", x, order=order))
    np.testing.assert_array_equal(derivatives("polygamma", x, order=order)[2], run("polygamma", x, order=order + 2))


@on_cpu
def test_derivatives_of_erfinv() -> None:
    """Near ±1 one unit of x is many units of y² = 34, and exp amplifies one unit to 34."""
    x, _, first, second = columns(ERFINV)
    _, first_actual, second_actual = derivatives("erfinv", x)
    np.testing.assert_allclose(first_actual, first, 80 * EPS)
    np.testing.assert_allclose(second_actual, second, 160 * EPS)


@on_cpu
def test_derivatives_of_log_ndtr_in_the_left_tail() -> None:
    """Φ underflows; both derivatives are accurate to a few units in the last place."""
    x, _, first, second = columns([row for row in LOG_NDTR if row[0] < -5])
    _, first_actual, second_actual = derivatives("log_ndtr", x)
    assert_within(3, first_actual, first)
    assert_within(8, second_actual, second)


@on_cpu
def test_derivatives_of_log_ndtr_elsewhere() -> None:
    x, _, first, second = columns([row for row in LOG_NDTR if -5 < row[0] < 38])
    _, first_actual, second_actual = derivatives("log_ndtr", x)
    np.testing.assert_allclose(first_actual, first, np.max((32 * EPS, EPS * 684 / 2)))
    left = x < 1
    np.testing.assert_allclose(first_actual[left], first[left], 32 * EPS)
    np.testing.assert_allclose(second_actual[left], second[left], 700 * EPS)
    np.testing.assert_allclose(second_actual[~left], second[~left], 350 * EPS)


@on_cpu
def test_derivatives_of_log_ndtr_at_extremes() -> None:
    actual = np.array(derivatives("log_ndtr", np.array([-1e200, -INF, 50.0, 1e200, INF, NAN])))
    np.testing.assert_array_equal(actual[0], [-INF, -INF, 0, 0, 0, NAN])
    np.testing.assert_array_equal(actual[1], [1e200, INF, 0, 0, 0, NAN])
    np.testing.assert_array_equal(actual[2, [0, 2, 3, 4]], [-1, 0, 0, 0])


def evaluate(function: Callable[..., Value], *numbers: float) -> Array:
    """Evaluate a function that emits nodes, at these numbers."""
    builder = Builder(registry())
    output = function(*(builder.constant(np.array(v)) for v in numbers))
    return EXECUTOR.run(make_plan(optimise(builder.graph([output])), Limits()), {})[0]


@on_cpu
@pytest.mark.parametrize("z", [0.5, 1.0, 3.0])
def test_continued_fraction_of_log_ndtr_has_25_levels(z: float) -> None:
    """z + 1/(z + 2/(z + 3/…)) at small z, where 24 or 26 levels give a different number."""
    expected = z
    for k in range(25, 0, -1):
        expected = z + k / expected
    np.testing.assert_allclose(evaluate(_inverse_mills_ratio, z), expected, 1e-14)


@on_cpu
def test_derivatives_of_betaln() -> None:
    """Relative errors, even if the two digammas agree in all digits."""
    a, b, _, by_a, by_b, twice, mixed = columns([row for row in BETALN if row[0] < 1e150])
    _, actual_by_a, actual_twice = derivatives("betaln", a, b)
    _, actual_by_b, actual_mixed = derivatives("betaln", a, b, by=(1, 0))
    for actual, expected in ((actual_by_a, by_a), (actual_by_b, by_b), (actual_twice, twice), (actual_mixed, mixed)):
        np.testing.assert_allclose(actual, expected, 150 * EPS)
    large = np.maximum(a, b) > 100
    np.testing.assert_allclose(actual_by_a[large], by_a[large], 5 * EPS)
    np.testing.assert_allclose(actual_by_b[large], by_b[large], 5 * EPS)


@on_cpu
@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (3.0, 0.5), (2.5, 40.0)])
def test_digamma_difference_matches_its_series(a: float, b: float) -> None:
    """log x − 1/2x − Σ B₂ₖ / (2k x²ᵏ) to k = 3, DLMF 5.11.2, at small x, where every term matters."""

    def series(x: float) -> float:
        return math.log(x) - 1 / (2 * x) - math.fsum(n / (2 * k * x ** (2 * k)) for k, n in enumerate(bernoulli(3), 1))

    np.testing.assert_allclose(evaluate(_asymptotic_difference, a, b), series(a) - series(a + b), 1e-14)


@on_cpu
def test_derivatives_of_betaln_outside_its_domain() -> None:
    a, b = np.array([0.5, 150.5]), np.array([-0.3, -200.25])
    _, first, second = derivatives("betaln", a, b)
    np.testing.assert_allclose(first, run("digamma", a) - run("digamma", a + b))
    np.testing.assert_allclose(second, run("polygamma", a, order=1) - run("polygamma", a + b, order=1))


# ---------------------------------------------------------------- limits of the domain


def test_values_at_poles_and_infinities() -> None:
    x = np.array([0.0, -0.0, -1.0, -1e17, INF, -INF, NAN])
    np.testing.assert_array_equal(run("digamma", x[[2, 4, 6]]), [NAN, INF, NAN])
    np.testing.assert_array_equal(run("digamma", x[:2]), [-INF, INF])
    np.testing.assert_array_equal(run("lgamma", x[[0, 1, 2, 3, 4, 6]]), [INF, INF, INF, INF, INF, NAN])
    np.testing.assert_array_equal(run("polygamma", x, order=1), [INF, INF, INF, INF, 0, INF, NAN])
    np.testing.assert_array_equal(run("polygamma", x, order=2), [-INF, -INF, -INF, -INF, 0, -INF, NAN])
    np.testing.assert_array_equal(run("erfinv", np.array([1, -1, 1.5, NAN])), [INF, -INF, NAN, NAN])
    np.testing.assert_array_equal(run("log_ndtr", x[[4, 5, 6]]), [0, -INF, NAN])
    np.testing.assert_array_equal(
        run("betaln", np.array([0.0, NAN, 1, 20]), np.array([2.0, 20, INF, INF])), [INF, NAN, -INF, -INF]
    )


def test_betaln_of_negative_numbers_matches_lgamma() -> None:
    a, b = np.array([-0.5, -2.5]), np.array([0.3, 30.0])
    expected = [math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in zip(a, b, strict=True)]
    np.testing.assert_allclose(run("betaln", a, b), expected, 1e-13)


# ---------------------------------------------------------------- dtypes, shapes, attributes

UNARY: list[tuple[str, dict[str, int]]] = [
    ("lgamma", {}),
    ("digamma", {}),
    ("polygamma", {"order": 1}),
    ("erfinv", {}),
    ("log_ndtr", {}),
]


@on_cpu
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("op", "attrs"), UNARY)
def test_narrow_floats_are_rounded_once(op: str, attrs: dict[str, int], dtype: str) -> None:
    x = np.linspace(-3.99, 3.99, 800).astype(dtype)
    with np.errstate(over="ignore"):
        expected = run(op, x.astype("float64"), **attrs).astype(dtype)
    actual = run(op, x, **attrs)
    if COMPILED and dtype == "float32":  # compiled kernels have float32 functions of their own
        np.testing.assert_allclose(actual, expected, 3 * np.finfo(dtype).eps)
    else:
        np.testing.assert_array_equal(actual, expected)


@on_cpu
def test_betaln_in_narrow_floats() -> None:
    a, b = (np.linspace(0.25, 40, 777).astype(d) for d in ("float16", "float32"))
    for pair, dtype in (((a, a[::-1]), "float16"), ((a, b), "float32"), ((b, b * 3), "float32")):
        actual = run("betaln", *pair)
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, run("betaln", *(x.astype("float64") for x in pair)).astype(dtype))


@pytest.mark.parametrize(("op", "attrs"), UNARY)
@pytest.mark.parametrize(("given", "expected"), [("int64", "float64"), ("int32", "float64"), ("int8", "float16")])
def test_integers_are_converted_to_floats(op: str, attrs: dict[str, int], given: str, expected: str) -> None:
    x = np.array([0, 1]) if op == "erfinv" else np.array([1, 5])
    actual = run(op, x.astype(given), **attrs)
    assert actual.dtype == expected
    np.testing.assert_array_equal(actual, run(op, x.astype(float), **attrs).astype(expected))


def test_betaln_promotes_like_numpy() -> None:
    one = np.ones(2)
    for a, b, expected in (
        ("int8", "float16", "float16"),
        ("int64", "float32", "float64"),
        ("bool", "int32", "float64"),
    ):
        assert run("betaln", one.astype(a), one.astype(b)).dtype == expected


@pytest.mark.parametrize(("op", "attrs"), UNARY)
def test_arrays_of_many_blocks(op: str, attrs: dict[str, int]) -> None:
    x = np.linspace(-0.9, 0.9, 3 * 2**15 + 5)
    whole = run(op, x, **attrs)
    np.testing.assert_array_equal(whole[::977], run(op, np.ascontiguousarray(x[::977]), **attrs))


def test_betaln_broadcasts_over_many_blocks() -> None:
    a, b = np.linspace(0.5, 30, 300)[:, None], np.linspace(0.5, 200, 200)
    actual = run("betaln", a, b)
    assert actual.shape == (300, 200)
    for i, j in ((0, 0), (7, 150), (299, 3), (150, 199)):
        assert actual[i, j] == run("betaln", a[i], b[j : j + 1])[0]
    np.testing.assert_array_equal(run("betaln", b, a), actual)
    _, (by_a, by_b) = grads("betaln", a, b)
    np.testing.assert_allclose(by_a[7], np.sum(run("digamma", a[7]) - run("digamma", a[7] + b)), 1e-12)
    np.testing.assert_allclose(by_b[9], np.sum(run("digamma", b[9]) - run("digamma", a + b[9])), 1e-12)
    assert (by_a.shape, by_b.shape) == (a.shape, b.shape)


@pytest.mark.parametrize("order", [-1, 1.5, True, "1", 171, 2**62])
def test_invalid_polygamma_order_is_refused(order: Any) -> None:
    refused = error("polygamma", np.ones(2), order=order)
    assert isinstance(refused, BadAttribute)
    assert "order" in refused.detail


def test_missing_polygamma_order_is_refused() -> None:
    assert "order is required" in error("polygamma", np.ones(2)).detail


def test_polygamma_of_the_largest_order_has_no_derivative() -> None:
    with pytest.raises(BadAttribute, match="at most 170, but is 171"):
        grads("polygamma", np.ones(2), order=170)
    assert np.isfinite(grads("polygamma", np.full(2, 9.0), order=169)[1][0]).all()


def test_scipy_is_loaded_lazily() -> None:
    program = "import sys, engine; engine.registry(); sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
