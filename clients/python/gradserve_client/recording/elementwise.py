"""The elementwise functions of the standard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from gradserve_client.errors import InputError
from gradserve_client.recording.emitting import (
    BOOL,
    FLOATING,
    Operand,
    broadcast_shape,
    cast,
    common_dtype,
    emit,
    is_scalar,
    lift,
    promote,
    real_dtype,
    require_ordered,
)
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.recorder import Traced

Unary = Callable[[Traced], Traced]
Binary = Callable[[Operand, Operand], Traced]
Bound = Operand | None


def _named(function: Callable[..., Traced], name: str, op: str) -> Callable[..., Traced]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Compute the standard's `{name}` elementwise, with the op `{op}`."
    return locates_errors(function)


def _floating(name: str, op: str | None = None, *, instead: str | None = None) -> Unary:
    """Create a function of floats and complex numbers. Integers are converted to float64.

    `instead` tells what to write for complex numbers, if the op does not support them.
    """
    op = op or name

    def function(x: Traced, /) -> Traced:
        (x,) = promote(x, floating=True)
        if instead:
            _check_real(x, instead)
        return emit(op, [x], x.shape, x.dtype)

    return _named(function, name, op)


def _check_real(x: Traced, instead: str) -> None:
    if x.dtype.kind == "c":
        raise InputError(f"no op computes this for complex numbers, but {x.type_name} is complex: {instead}")


def _numeric(name: str, op: str | None = None, *, orders: bool = False) -> Unary:
    """Create a function of numbers that preserves their dtype; with `orders=True`, not of complex numbers."""
    op = op or name

    def function(x: Traced, /) -> Traced:
        x = require_ordered(_numbers(x)) if orders else _numbers(x)
        return emit(op, [x], x.shape, x.dtype)

    return _named(function, name, op)


def _numbers(x: Operand) -> Traced:
    x = lift(x)
    if x.dtype == BOOL:
        raise InputError("expected numbers, got bool: convert it with astype()")
    return x


def _arithmetic(
    name: str,
    op: str,
    *,
    scalar: str | None = None,
    attr: str = "scalar",
    commutes: bool = False,
    floating: bool = False,
    orders: bool = False,
) -> Binary:
    """Create a function of two arrays. If one is a number, it becomes the attribute `attr` of the op `scalar`, if any.

    With `orders=True`, complex numbers are rejected.
    """

    def function(x1: Operand, x2: Operand, /) -> Traced:
        if commutes and is_scalar(x1):
            x1, x2 = x2, x1
        if scalar and _is_attribute(x2, x1):
            (x,) = promote(x1)
            return emit(scalar, [x], x.shape, x.dtype, **{attr: float(x2)})  # type: ignore[arg-type] # a number
        x, y = promote(x1, x2, floating=floating)
        _numbers(require_ordered(x) if orders else x)
        if op == "pow":
            _check_real(x, "exponents must be real Python numbers; write exp(y * log(x))")
        return emit(op, [x, y], broadcast_shape(x, y), x.dtype)

    return _named(function, name, op)


def _is_attribute(number: Operand, x: Operand) -> bool:
    """Return whether a number can be an attribute: finite and real, next to an array of floats or complex numbers."""
    if isinstance(number, complex) or not is_scalar(number) or not isinstance(x, Traced):
        return False
    return x.dtype.kind in FLOATING and math.isfinite(float(number))  # type: ignore[arg-type] # a number


def _comparison(name: str, *, orders: bool = True) -> Binary:
    def function(x1: Operand, x2: Operand, /) -> Traced:
        x, y = promote(x1, x2)
        if orders:
            require_ordered(x)
        return emit(name, [x, y], broadcast_shape(x, y), BOOL)

    return _named(function, name, name)


_LOGARITHMS: Final = "write it with log() and sqrt()"

acos = _floating("acos", instead=_LOGARITHMS)
acosh = _floating("acosh", instead=_LOGARITHMS)
asin = _floating("asin", instead=_LOGARITHMS)
asinh = _floating("asinh", instead=_LOGARITHMS)
atan = _floating("atan", instead=_LOGARITHMS)
atanh = _floating("atanh", instead=_LOGARITHMS)
ceil = _numeric("ceil", orders=True)
cos = _floating("cos")
cosh = _floating("cosh")
exp = _floating("exp")
expm1 = _floating("expm1", instead="write exp(x) - 1, if rounding allows")
floor = _numeric("floor", orders=True)
log = _floating("log")
log1p = _floating("log1p", instead="write log(1 + x), if rounding allows")
negative = _numeric("negative", "neg")
reciprocal = _floating("reciprocal")
round = _numeric("round", orders=True)
sin = _floating("sin")
sinh = _floating("sinh")
sqrt = _floating("sqrt")
square = _numeric("square")
tanh = _floating("tanh")

add = _arithmetic("add", "add", scalar="add_scalar", commutes=True)
subtract = _arithmetic("subtract", "sub", scalar="sub_scalar")
multiply = _arithmetic("multiply", "mul", scalar="mul_scalar", commutes=True)
divide = _arithmetic("divide", "div", scalar="div_scalar", floating=True)
pow = _arithmetic("pow", "pow", scalar="pow_scalar", attr="exponent")
remainder = _arithmetic("remainder", "mod", orders=True)
atan2 = _arithmetic("atan2", "atan2", floating=True, orders=True)
logaddexp = _arithmetic("logaddexp", "logaddexp", floating=True, orders=True)
maximum = _arithmetic("maximum", "maximum", orders=True)
minimum = _arithmetic("minimum", "minimum", orders=True)

equal = _comparison("equal", orders=False)
not_equal = _comparison("not_equal", orders=False)
less = _comparison("less")
less_equal = _comparison("less_equal")
greater = _comparison("greater")
greater_equal = _comparison("greater_equal")

_LN_2: Final = math.log(2)
_LN_10: Final = math.log(10)


@locates_errors
def abs(x: Traced, /) -> Traced:
    """Return the absolute value, which is real for complex x."""
    x = _numbers(x)
    return emit("abs", [x], x.shape, real_dtype(x.dtype))


@locates_errors
def sign(x: Traced, /) -> Traced:
    """Return −1, 0 or 1; for complex x, x / |x|, and 0 at 0."""
    x = _numbers(x)
    if x.dtype.kind != "c":
        return emit("sign", [x], x.shape, x.dtype)
    size = abs(x)
    return divide(x, where(equal(size, 0), 1, size))


@locates_errors
def tan(x: Traced, /) -> Traced:
    """Return the tangent.

    For complex x it is −i tanh(i x), which does not overflow far from the real axis.
    """
    (x,) = promote(x, floating=True)
    if x.dtype.kind != "c":
        return emit("tan", [x], x.shape, x.dtype)
    return multiply(tanh(multiply(x, 1j)), -1j)


@locates_errors
def log2(x: Traced, /) -> Traced:
    """Return log₂ x, computed as ln x / ln 2 for complex x."""
    (x,) = promote(x, floating=True)
    return divide(log(x), _LN_2) if x.dtype.kind == "c" else emit("log2", [x], x.shape, x.dtype)


@locates_errors
def log10(x: Traced, /) -> Traced:
    """Return log₁₀ x, computed as ln x / ln 10."""
    return divide(log(x), _LN_10)


@locates_errors
def positive(x: Traced, /) -> Traced:
    """Return x as a new array."""
    x = _numbers(x)
    return x.recorder.array(x.node, x.shape, x.dtype)


@locates_errors
def conj(x: Traced, /) -> Traced:
    """Return the complex conjugate; real x as a new array."""
    x = _numbers(x)
    return emit("conj", [x], x.shape, x.dtype) if x.dtype.kind == "c" else positive(x)


@locates_errors
def real(x: Traced, /) -> Traced:
    """Return the real part; real x as a new array."""
    x = _numbers(x)
    return emit("real", [x], x.shape, real_dtype(x.dtype)) if x.dtype.kind == "c" else positive(x)


@locates_errors
def imag(x: Traced, /) -> Traced:
    """Return the imaginary part; zeros for real x."""
    x = _numbers(x)
    return emit("imag", [x], x.shape, real_dtype(x.dtype)) if x.dtype.kind == "c" else multiply(positive(x), 0)


@locates_errors
def angle(x: Traced, /) -> Traced:
    """Return the angle in the complex plane, in [−π, π]; 0 or π for real x. NumPy's: the standard has none."""
    (x,) = promote(x, floating=True)
    return emit("angle", [x], x.shape, real_dtype(x.dtype))


@locates_errors
def trunc(x: Traced, /) -> Traced:
    """Round towards zero."""
    x = require_ordered(_numbers(x))
    return x if x.dtype.kind != "f" else where(less(x, 0), ceil(x), floor(x))


@locates_errors
def hypot(x1: Operand, x2: Operand, /) -> Traced:
    """Return √(x1² + x2²) without intermediate overflow. The gradient at the origin is 0."""
    x, y = promote(x1, x2, floating=True)
    require_ordered(x)
    shape = broadcast_shape(x, y)
    operands = [emit("broadcast_to", [each], shape, x.dtype, shape=shape) for each in (x, y)]
    pair = emit("stack", operands, (2, *shape), x.dtype, axis=0)
    return emit("norm", [pair], shape, x.dtype, axes=[0])


@locates_errors
def floor_divide(x1: Operand, x2: Operand, /) -> Traced:
    """Return ⌊x1 / x2⌋, computed from the remainder as NumPy does: rounding of x1 / x2 could yield the next integer.

    Integer division is exact up to 2⁵³. Integer division by 0 gives 0.
    """
    x, y = promote(x1, x2)
    require_ordered(x)
    rest = remainder(x, y)
    quotient = round(divide(subtract(x, rest), y))
    if x.dtype.kind == "f":
        return where(isfinite(rest), quotient, floor(divide(x, y)))
    return cast(where(equal(y, 0), 0.0, quotient), x.dtype)


@locates_errors
def signbit(x: Traced, /) -> Traced:
    """Return whether the sign bit is set: for negative numbers and −0. For NaN it is False."""
    return less(atan2(x, -1.0), 0)


@locates_errors
def copysign(x1: Operand, x2: Operand, /) -> Traced:
    """Return |x1| with the sign of x2."""
    x, y = promote(x1, x2, floating=True)
    size = abs(require_ordered(x))
    return where(signbit(y), negative(size), size)


@locates_errors
def isfinite(x: Traced, /) -> Traced:
    """Return whether x is neither infinite nor NaN."""
    x = _numbers(x)
    return emit("is_finite", [x], x.shape, BOOL)


@locates_errors
def isnan(x: Traced, /) -> Traced:
    """Return whether x is NaN."""
    x = _numbers(x)
    return not_equal(x, x)


@locates_errors
def isinf(x: Traced, /) -> Traced:
    """Return whether x is ∞ or −∞."""
    x = _numbers(x)
    return equal(abs(x), math.inf)


@locates_errors
def clip(x: Traced, /, min: Bound = None, max: Bound = None) -> Traced:
    """Limit x to [min, max], in the dtype of x. A bound that is None does not apply."""
    x = require_ordered(_numbers(x))
    bounds = {name: bound for name, bound in (("min", min), ("max", max)) if bound is not None}
    if all(_is_attribute(bound, x) for bound in bounds.values()):
        return emit("clamp", [x], x.shape, x.dtype, **bounds) if bounds else positive(x)
    y = x if min is None else maximum(x, min)
    return cast(y if max is None else minimum(y, max), x.dtype)


def _logical(name: str, op: str) -> Binary:
    def function(x1: Operand, x2: Operand, /) -> Traced:
        x, y = (_truth(x1), _truth(x2))
        return emit(op, [x, y], broadcast_shape(x, y), BOOL)

    return _named(function, name, op)


def _truth(x: Operand) -> Traced:
    x = lift(x)
    if x.dtype != BOOL:
        raise InputError(f"expected bool, got {x.dtype.name}: compare it with 0")
    return x


logical_and = _logical("logical_and", "logical_and")
logical_or = _logical("logical_or", "logical_or")
logical_xor = _logical("logical_xor", "not_equal")


@locates_errors
def logical_not(x: Traced, /) -> Traced:
    """Return the logical negation of bools."""
    x = _truth(x)
    return emit("logical_not", [x], x.shape, BOOL)


def _bitwise(name: str, logical: Callable[..., Traced]) -> Callable[..., Traced]:
    def function(*arrays: Operand) -> Traced:
        dtype = common_dtype(*arrays)
        if dtype != BOOL:
            raise InputError(
                f"no op works on the bits of {dtype.name}: for bool, use {logical.__name__}; for integers, write sums "
                "and products of powers of 2"
            )
        return logical(*arrays)

    return _named(function, name, logical.__name__)


bitwise_and = _bitwise("bitwise_and", logical_and)
bitwise_or = _bitwise("bitwise_or", logical_or)
bitwise_xor = _bitwise("bitwise_xor", logical_xor)
bitwise_invert = _bitwise("bitwise_invert", logical_not)


@locates_errors
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Traced:
    """Return x1 where the condition is true, else x2. Gradients go to the selected elements only."""
    condition_array = _truth(condition)
    x, y = promote(x1, x2)
    return emit("where", [condition_array, x, y], broadcast_shape(condition_array, x, y), x.dtype)
