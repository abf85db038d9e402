"""Elementwise ops: closed forms of values and derivatives, at ordinary, special and extreme points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw, unbroadcast

Function = Callable[..., Any]
INF, NAN = math.inf, math.nan
BIG = (-1e300, -800.0, -40.0, 40.0, 800.0, 1e300, INF, -INF)
TAILS = (-1e4, -800.0, -745.0, -40.0, -1e-9, 0.0, 1e-9, 40.0, 745.0, 800.0, 1e4)


def each(f: Callable[[float], float]) -> Function:
    """Apply a function of one number to arrays."""

    def apply(x: Array, **attrs: Any) -> Array:
        return np.array([f(float(v), **attrs) for v in np.ravel(x)], float).reshape(np.shape(x))

    return apply


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)) if x > -700 else 0.0


def softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def normal(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def normal_cdf(x: float) -> float:
    """Φ(x)."""
    return math.erfc(-x / math.sqrt(2)) / 2


def elu(x: float, alpha: float = 1.0) -> float:
    return x if x > 0 else alpha * math.expm1(x)


def elu_slope(x: float, alpha: float = 1.0) -> float:
    return 1 if x > 0 else alpha * math.exp(x)


SELU = (1.0507009873554804934193349852946, 1.6732632423543772848170429916717)
_K = math.sqrt(2 / math.pi)


def gelu(x: float, approximate: str = "none") -> float:
    inner = _K * (x + 0.044715 * x**3)
    return x * normal_cdf(x) if approximate == "none" else x / 2 * (1 + math.tanh(inner))


def gelu_slope(x: float, approximate: str = "none") -> float:
    if approximate == "none":
        return normal_cdf(x) + x * normal(x)
    inner, slope = _K * (x + 0.044715 * x**3), _K * (1 + 3 * 0.044715 * x**2)
    return (1 + math.tanh(inner)) / 2 + x / 2 * slope * (0.0 if abs(inner) > 300 else math.cosh(inner) ** -2)


def zero(x: Array, **_: Any) -> Array:
    return 0.0 * np.ones_like(x)


# op: value, derivative, domain, special and extreme points
UNARY: dict[str, tuple[Function, Function, tuple[float, float], Sequence[float]]] = {
    "identity": (lambda x: x, np.ones_like, (-2, 2), BIG),
    "copy_to_device": (lambda x: x, np.ones_like, (-2, 2), (0.0,)),
    "stop_gradient": (lambda x: x, zero, (-2, 2), (0.0,)),
    "neg": (lambda x: -x, lambda x: -np.ones_like(x), (-2, 2), BIG),
    "abs": (np.fabs, np.sign, (-2, 2), (0.0, -0.0, *BIG)),
    "sign": (np.sign, zero, (-2, 2), (0.0, -0.0, *BIG)),
    "reciprocal": (lambda x: x**-1.0, lambda x: -(x**-2.0), (0.5, 2), (-0.5, 1e100, -1e-100, INF)),
    "square": (lambda x: x * x, lambda x: x + x, (-2, 2), (0.0, 1e150, -1e-200, INF)),
    "sqrt": (lambda x: x**0.5, lambda x: 0.5 * x**-0.5, (0.1, 3), (1e-300, 1e300, 0.0, -1.0, INF)),
    "rsqrt": (lambda x: x**-0.5, lambda x: -0.5 * x**-1.5, (0.1, 3), (1e-100, 1e100, -1.0)),
    "exp": (np.exp, np.exp, (-2, 2), (-INF, -800.0, -1e-300, 0.0, 700.0, 710.0, NAN)),
    "expm1": (np.expm1, np.exp, (-2, 2), (-800.0, -1e-12, 0.0, 1e-12, 700.0, 710.0)),
    "log": (np.log, lambda x: 1 / x, (0.1, 3), (1e-300, 1e300, 0.0, -1.0, INF)),
    "log1p": (np.log1p, lambda x: 1 / (1 + x), (-0.5, 3), (-1e-12, 1e-12, 0.0, 1e300, -1.0, -2.0)),
    "log2": (np.log2, lambda x: 1 / (x * math.log(2)), (0.1, 3), (1e-300, 1e300, 0.0)),
    "sin": (each(math.sin), each(math.cos), (-4, 4), (0.0, 1e6, -1e15)),
    "cos": (each(math.cos), lambda x: -np.sin(x), (-4, 4), (0.0, 1e6, -1e15)),
    "tan": (each(math.tan), each(lambda v: math.cos(v) ** -2), (-1, 1), (0.0, 1.57, 1e6)),
    "asin": (np.arcsin, lambda x: ((1 - x) * (1 + x)) ** -0.5, (-0.9, 0.9), (0.0, 1.0, -1.0, 1 - 1e-12, 2.0)),
    "acos": (np.arccos, lambda x: -(((1 - x) * (1 + x)) ** -0.5), (-0.9, 0.9), (0.0, 1.0, -1.0, -1 + 1e-12)),
    "atan": (np.arctan, lambda x: 1 / (1 + x * x), (-3, 3), (0.0, 1e8, -1e100, INF)),
    "sinh": (np.sinh, np.cosh, (-2, 2), (0.0, 1e-12, -700.0, 711.0)),
    "cosh": (np.cosh, np.sinh, (-2, 2), (0.0, 1e-12, -700.0, 711.0)),
    "asinh": (np.arcsinh, lambda x: 1 / np.hypot(1, x), (-3, 3), (0.0, 1e-12, -1e8, 1e200)),
    "acosh": (np.arccosh, lambda x: ((x - 1) * (x + 1)) ** -0.5, (1.1, 3), (1.0, 1 + 1e-12, 1e100, 0.5)),
    "atanh": (np.arctanh, lambda x: 1 / ((1 - x) * (1 + x)), (-0.9, 0.9), (0.0, 1.0, -1.0, 1 - 1e-12, 2.0)),
    "tanh": (np.tanh, lambda x: np.where(np.abs(x) > 300, 0, 1 / np.cosh(x) ** 2), (-2, 2), (*TAILS, *BIG)),
    "sigmoid": (each(sigmoid), each(lambda v: sigmoid(v) * sigmoid(-v)), (-3, 3), TAILS),
    "log_sigmoid": (each(lambda v: -softplus(-v)), each(lambda v: sigmoid(-v)), (-3, 3), TAILS),
    "softplus": (each(softplus), each(sigmoid), (-3, 3), TAILS),
    "erf": (each(math.erf), each(lambda v: 2 / math.sqrt(math.pi) * math.exp(-v * v)), (-3, 3), TAILS),
    "erfc": (each(math.erfc), each(lambda v: -2 / math.sqrt(math.pi) * math.exp(-v * v)), (-3, 3), (*TAILS, 6, 26)),
    "relu": (lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), (-2, 2), (0.0, -0.0, 1e-300, *BIG)),
    "selu": (
        each(lambda v: SELU[0] * elu(v, SELU[1])),
        each(lambda v: SELU[0] * elu_slope(v, SELU[1])),
        (-2, 2),
        (-800.0, 1e-12, 800.0),
    ),
    "silu": (each(lambda v: v * sigmoid(v)), each(lambda v: sigmoid(v) * (1 + v * sigmoid(-v))), (-3, 3), TAILS),
    "elu": (each(elu), each(elu_slope), (-2, 2), (-800.0, 0.0, 1e-12, 800.0)),
    "gelu": (each(gelu), each(gelu_slope), (-3, 3), TAILS),
    "leaky_relu": (lambda x: np.where(x > 0, x, x / 100), lambda x: np.where(x > 0, 1, 0.01), (-2, 2), (800.0, -1e300)),
    "log_eps": (lambda x: np.log(x + 1e-5), lambda x: 1 / (x + 1e-5), (0.1, 2), (0.0, 1e-300, 1e300)),
    "floor": (each(math.floor), zero, (-3, 3), (0.0, -0.5, 1e15)),
    "ceil": (each(math.ceil), zero, (-3, 3), (0.0, -0.5, 1e15)),
    "round": (each(round), zero, (-3, 3), (0.5, 1.5, -0.5, -2.5, 1e15)),
}

# op, attributes, value, derivative, points
WITH_ATTRS: list[tuple[str, dict[str, Any], Function, Function, Sequence[float]]] = [
    ("add_scalar", {"scalar": 2.5}, lambda x, scalar: x + 2.5, lambda x, scalar: 1, (-1.0, 0.0, 1e300)),
    ("sub_scalar", {"scalar": 2.5}, lambda x, scalar: x - 2.5, lambda x, scalar: 1, (-1.0, 0.0, 1e300)),
    ("mul_scalar", {"scalar": -0.5}, lambda x, scalar: -x / 2, lambda x, scalar: -0.5, (-1.0, 0.0, 1e300)),
    ("mul_scalar", {"scalar": 0.0}, lambda x, scalar: 0 * x, lambda x, scalar: 0, (-1.0, 0.0, INF)),
    ("div_scalar", {"scalar": 3.0}, lambda x, scalar: x / 3, lambda x, scalar: 1 / 3, (-1.0, 0.0, 1e300)),
    ("relu", {"at_zero": 1.0}, lambda x, at_zero: [0.0, 0, 2], lambda x, at_zero: [0, 1, 1], (-1.0, 0.0, 2.0)),
    ("relu", {"at_zero": 0.3}, lambda x, at_zero: [0.0, 0, 2], lambda x, at_zero: [0, 0.3, 1], (-1.0, 0.0, 2.0)),
    ("leaky_relu", {"alpha": 0.2}, lambda x, alpha: [-0.4, 0.1, 2], lambda x, alpha: [0.2, 1, 1], (-2.0, 0.1, 2.0)),
    ("elu", {"alpha": 0.5}, each(elu), each(elu_slope), (-800.0, -1.0, -1e-9, 2.0)),
    ("gelu", {"approximate": "tanh"}, each(gelu), each(gelu_slope), (-800.0, -1.0, 0.0, 0.3, 3.0, 800.0)),
    ("gelu", {"approximate": "none"}, each(gelu), each(gelu_slope), (-800.0, -1.0, 0.0, 0.3, 3.0, 800.0)),
    ("log_eps", {"eps": 0.5}, lambda x, eps: np.log(x + 0.5), lambda x, eps: 1 / (x + 0.5), (0.0, 2.0, 1e300)),
    (
        "clamp",
        {"min": -1.0, "max": 1.0},
        lambda x, **_: [-1, -1, 0.5, 1],
        lambda x, **_: [0, 1, 1, 1],
        (-2, -1, 0.5, 1),
    ),
    ("clamp", {"min": 0.0}, lambda x, **_: [0.0, 0, 2], lambda x, **_: [0, 1, 1], (-1, 0, 2)),
    ("clamp", {"max": 0.0}, lambda x, **_: [-1.0, 0, 0], lambda x, **_: [1, 1, 0], (-1, 0, 2)),
]

POWERS = [2.0, 3.0, 1.0, 0.0, -1.0, 0.5, 2.5, -2.0]


def power_points(exponent: float) -> list[float]:
    """Points for a power: 0 if the derivative there is finite, negative bases if the power is real."""
    whole = exponent == int(exponent)
    return [0.3, 1.7, *([0.0] if exponent >= 1 or exponent == 0 else []), *([-0.7, -3.0] if whole else [])]


def power_slope(x: Array, exponent: float) -> Array:
    return 0 * x if exponent == 0 else exponent * x ** (exponent - 1)


def pointwise(op: str, f: Function, slope: Function, x: Any, label: str = "", **attrs: Any) -> Case:
    """A case of a function of one operand, with its derivative."""
    return case(op, f, x, pull=lambda g, v, **a: [g * slope(v, **a)], label=label, **attrs)


def unary_cases() -> Iterator[Case]:
    for op, (f, slope, (low, high), special) in UNARY.items():
        for shape in ((2, 3), (), (0, 3)):
            yield pointwise(op, f, slope, draw(*shape, low=low, high=high))
        yield pointwise(op, f, slope, np.array(special, float), label="special")
    for op, attrs, f, slope, points in WITH_ATTRS:
        yield pointwise(op, f, slope, np.array(points, float), label="special" if max(points) > 100 else "", **attrs)
    for p in POWERS:
        for op in ("pow_scalar", "pow"):
            yield pointwise(op, lambda x, exponent: x**exponent, power_slope, np.array(power_points(p)), exponent=p)


def half(a: Any, b: Any) -> Any:
    """1 if a is larger, one half if they tie."""
    return np.where(a == b, 0.5, a > b)


def turn(a: Any, b: Any) -> Any:
    """a / (a² + b²)."""
    length = np.hypot(a, b)
    return a / length / length


# op: value, both partial derivatives, domain of a and of b
Range = tuple[float, float]
BINARY: dict[str, tuple[Function, Function, Function, Range, Range]] = {
    "add": (lambda a, b: a + b, lambda a, b: 1, lambda a, b: 1, (-2, 2), (-2, 2)),
    "sub": (lambda a, b: a - b, lambda a, b: 1, lambda a, b: -1, (-2, 2), (-2, 2)),
    "mul": (lambda a, b: a * b, lambda a, b: b, lambda a, b: a, (-2, 2), (-2, 2)),
    "div": (lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / b**2, (-2, 2), (0.5, 2)),
    "pow": (lambda a, b: a**b, lambda a, b: b * a ** (b - 1), lambda a, b: a**b * np.log(a), (0.3, 2), (-2, 2)),
    "maximum": (np.maximum, half, lambda a, b: half(b, a), (-2, 2), (-2, 2)),
    "minimum": (np.minimum, lambda a, b: half(b, a), half, (-2, 2), (-2, 2)),
    "atan2": (np.arctan2, lambda a, b: turn(b, a), lambda a, b: -turn(a, b), (-2, 2), (-2, 2)),
    "mod": (lambda a, b: a - b * np.floor(a / b), lambda a, b: 1, lambda a, b: -np.floor(a / b), (-5, 5), (0.5, 2)),
    "logaddexp": (
        lambda a, b: np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b))),
        lambda a, b: each(sigmoid)(a - b),
        lambda a, b: each(sigmoid)(b - a),
        (-2, 2),
        (-2, 2),
    ),
}
SAME: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((2, 3), (2, 3)), ((), ())]
SHAPES = [*SAME, ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((3,), ()), ((0, 3), (3,)), ((2, 0), (1, 1))]


# op: special pairs
PAIRS: dict[str, list[tuple[float, float]]] = {
    "maximum": [(1, 1), (0, -0.0), (2, 1), (-1e300, 1e300)],
    "minimum": [(1, 1), (0, -0.0), (2, 1), (-1e300, 1e300)],
    "logaddexp": [(800, 800), (-800, -800), (1e4, -1e4), (-1e4, 1e4), (0, 0)],
    "mod": [(5, 3), (-5, 3), (5, -3), (-5, -3), (0, 2), (6, 3), (1e15, 7)],
    "atan2": [(1, 0), (-1, 0), (0, 1), (1e-100, 1e-100), (1e100, -1e100), (3, -4)],
    "div": [(0, 2), (1e300, 1e-5), (1, -1e-100), (-1e-200, 1e100)],
    "mul": [(0, 5), (5, 0), (0, 0), (1e200, 1e-200)],
}
ZERO_BASES = ((0.0, 2.0), (0.0, 1.0), (0.0, 3.5), (-2.0, 3.0), (-1.5, 2.0))


def pair_case(op: str, a: Array, b: Array, label: str = "") -> Case:
    f, slope_a, slope_b, *_ = BINARY[op]

    def pull(g: Array, a: Array, b: Array) -> list[Array]:
        return [unbroadcast(g * slope_a(a, b), a.shape), unbroadcast(g * slope_b(a, b), b.shape)]

    return case(op, f, a, b, pull=pull, label=label)


def zero_base(g: Array, a: Array, b: Array) -> list[Array]:
    """The derivative with respect to b is 0 at a = 0, b > 0, and NaN, like the logarithm, for a negative base."""
    return [g * b * a ** (b - 1), g * np.where(a == 0, 0, a**b * np.log(a))]


def binary_cases() -> Iterator[Case]:
    for op, (_, _, _, a, b) in BINARY.items():
        for left, right in SHAPES:
            yield pair_case(op, draw(*left, low=a[0], high=a[1]), draw(*right, low=b[0], high=b[1]))
        if op in PAIRS:
            yield pair_case(op, *(np.array(side, float) for side in zip(*PAIRS[op], strict=True)), label="special")
    bases, exponents = (np.array(side) for side in zip(*ZERO_BASES, strict=True))
    yield case("pow", lambda a, b: a**b, bases, exponents, pull=zero_base, label="special")


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
}


def choice_cases() -> Iterator[Case]:
    for op, f in COMPARISONS.items():
        yield case(op, f, np.array([[1.0, 2.0, 0.0, NAN]]), np.array([[2.0], [0.0], [1.0]]))
        yield case(op, f, np.array(3), np.array([2, 3, 4]))
        yield case(op, f, np.zeros((0, 2)), np.zeros(2))
    yield case("logical_not", lambda x: x == 0, np.array([0.0, 2.0, -0.0]))
    yield case("logical_not", np.logical_not, np.array([True, False]))
    yield case("is_finite", np.isfinite, np.array([1.0, INF, -INF, NAN]))

    def pull(g: Array, c: Array, a: Array, b: Array) -> list[Any]:
        return [0 * c, unbroadcast(np.where(c, g, 0), a.shape), unbroadcast(np.where(c, 0, g), b.shape)]

    conditions = [np.array([[True, False, True]]), np.array(False), np.array([[0.0, 2.0, -1.0]]), np.array([[0, 1, 2]])]
    for condition in conditions:
        yield case("where", np.where, condition, draw(2, 3), draw(2, 1), pull=pull)
    yield case("where", np.where, np.array([True, False]), [1.0, INF], [NAN, 2.0], pull=pull)
    for source in (np.array([1.7, -1.7, 0.0]), np.array([1, 2]), np.array([True, False])):
        for target in ("float64", "float32", "int32", "bool"):
            yield pointwise("cast", lambda x, dtype: x.astype(dtype), lambda x, dtype: 1, source, dtype=target)


def cases() -> Iterator[Case]:
    """All cases of this family."""
    yield from unary_cases()
    yield from binary_cases()
    yield from choice_cases()
