"""Special functions: series, products and Python's error function, at ordinary and extreme points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw, unbroadcast
from tests.reference.pointwise import SHAPES, each, normal, pointwise

Function = Callable[..., Any]
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def digamma(x: float) -> float:
    """ψ(x) = ψ(x + 30) − Σ 1/(x + k), and its asymptotic series (DLMF 5.11.2)."""
    z = x + 30
    tail = math.log(z) - 1 / (2 * z) - sum(b / (2 * k * z ** (2 * k)) for k, b in enumerate(BERNOULLI, 1))
    return tail - sum(1 / (x + k) for k in range(30))


def polygamma(x: float, order: int) -> float:
    """(−1)ⁿ⁺¹ n! Σ (x + k)⁻⁽ⁿ⁺¹⁾, the end of the sum by Euler and Maclaurin."""
    if order == 0:
        return digamma(x)
    z, p = x + 40, order + 1
    tail = z ** (1 - p) / (p - 1) + z**-p / 2
    rising = float(p)
    for k, b in enumerate(BERNOULLI, 1):
        tail += b / math.factorial(2 * k) * rising * z ** (1 - p - 2 * k)
        rising *= (p + 2 * k - 1) * (p + 2 * k)
    head = sum((x + k) ** -p for k in range(40))
    return (-1) ** p * math.factorial(order) * (head + tail)


def erfinv(x: float) -> float:
    """Invert math.erf, or math.erfc if x is near 1, by bisection."""
    if x < 0:
        return -erfinv(-x)
    low, high = 0.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle) > 1 - x else (low, middle)
    return low


def small_erfinv(x: float) -> float:
    """Refine `erfinv` by Newton's method on math.erf, which has all digits near 0."""
    y = erfinv(x)
    return y - (math.erf(y) - x) / erf_slope(y)


def erf_slope(y: float) -> float:
    return 2 / math.sqrt(math.pi) * math.exp(-y * y)


def log_ndtr(x: float) -> float:
    """log Φ(x) by math.erfc; far left by the continued fraction of φ/Φ."""
    if x > 0:
        return math.log1p(-math.erfc(x / math.sqrt(2)) / 2)
    return -x * x / 2 - math.log(2 * math.pi) / 2 - math.log(mills(x))


def mills(x: float) -> float:
    """φ(x) / Φ(x)."""
    if x > -10:
        return normal(x) / (math.erfc(-x / math.sqrt(2)) / 2)
    t = -x
    for k in range(200, 0, -1):
        t = -x + k / t
    return t


def betaln(a: Array, b: Array) -> Array:
    pairs = np.broadcast(a, b)
    values = [math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in pairs]
    return np.array(values, float).reshape(pairs.shape)


# op, attributes, value, derivative, domains, special points
UNARY: list[tuple[str, dict[str, int], Function, Function, list[tuple[float, float]], list[float]]] = [
    (
        "lgamma",
        {},
        math.lgamma,
        digamma,
        [(0.3, 5), (-1.7, -1.3)],
        [1.0, 2.0, 1 + 1e-9, 1e-9, 100.5, 1e15, -0.5, -10.3],
    ),
    (
        "digamma",
        {},
        digamma,
        lambda x: polygamma(x, 1),
        [(0.3, 5), (-1.7, -1.3)],
        [1e-9, 1.4616, 1e6, -0.5, -0.999, -9.3],
    ),
    *(
        ("polygamma", {"order": n}, polygamma, lambda x, order: polygamma(x, order + 1), [(0.3, 5), (-1.7, -1.3)], at)
        for n, at in ((0, [0.01, 50.0]), (1, [1e-3, 1e6, -20.4]), (2, [1e-3, 1e3, -20.4]), (7, [0.1, 100.0, -3.3]))
    ),
    (
        "erfinv",
        {},
        small_erfinv,
        lambda x: 1 / erf_slope(small_erfinv(x)),
        [(-0.95, 0.95)],
        [0.0, 1e-12, -0.999, 0.9999],
    ),
    ("log_ndtr", {}, log_ndtr, mills, [(-3, 3)], [-1e4, -800.0, -40.0, -5.0, 0.0, 1e-9, 8.0, 40.0, 1e4]),
]


def beta_pull(g: Array, a: Array, b: Array) -> list[Array]:
    both = each(digamma)(a + b)
    return [unbroadcast(g * (each(digamma)(x) - both), x.shape) for x in (a, b)]


def cases() -> Iterator[Case]:
    """All cases of this family."""
    for op, attrs, f, slope, domains, special in UNARY:
        for low, high in domains:
            yield pointwise(op, each(f), each(slope), draw(2, 3, low=low, high=high), **attrs)
        yield pointwise(op, each(f), each(slope), draw(low=domains[0][0], high=domains[0][1]), **attrs)
        yield pointwise(op, each(f), each(slope), np.zeros((0, 3)), **attrs)
        yield pointwise(op, each(f), each(slope), np.array(special), label="special", **attrs)
    for left, right in SHAPES:
        yield case("betaln", betaln, draw(*left, low=0.3, high=30), draw(*right, low=0.3, high=30), pull=beta_pull)
    large = np.array([1e-9, 0.5, 150.0, 1e3, 200.0]), np.array([2.0, 1e4, 0.25, 3e3, 1e-3])
    yield case("betaln", betaln, *large, pull=beta_pull, label="special")
