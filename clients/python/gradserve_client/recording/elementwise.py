"""The functions of the standard that work element by element."""

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
    function.__doc__ = f"As the standard's `{name}`, by the op `{op}`."
    return locates_errors(function)


def _floating(name: str, op: str | None = None, *, instead: str | None = None) -> Unary:
    """A function of floats and complex numbers; of integers it is that of float64.

    `instead` says what to write of complex numbers, where the op has none.
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
        raise InputError(f"no op has this of complex numbers, as {x.type_name} is: {instead}")


def _numeric(name: str, op: str | None = None, *, orders: bool = False) -> Unary:
    """A function of numbers that keeps their dtype; `orders`: not of complex ones."""
    op = op or name

    def function(x: Traced, /) -> Traced:
        x = require_ordered(_numbers(x)) if orders else _numbers(x)
        return emit(op, [x], x.shape, x.dtype)

    return _named(function, name, op)


def _numbers(x: Operand) -> Traced:
    x = lift(x)
    if x.dtype == BOOL:
        raise InputError("this is of numbers, and bool is none: astype() makes some of it")
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
    """A function of two arrays. `scalar` is the op, if there is one, of which a number is the attribute.

    `orders`: not of complex numbers.
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
            _check_real(x, "its exponents are real numbers of Python's; write exp(y * log(x))")
        return emit(op, [x, y], broadcast_shape(x, y), x.dtype)

    return _named(function, name, op)


def _is_attribute(number: Operand, x: Operand) -> bool:
    """Whether it is a number that JSON has, beside an array of floats or complex ones, whose dtype it takes."""
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
expm1 = _floating("expm1", instead="write exp(x) - 1, where rounding allows")
floor = _numeric("floor", orders=True)
log = _floating("log")
log1p = _floating("log1p", instead="write log(1 + x), where rounding allows")
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
    """The size of x, which is real."""
    x = _numbers(x)
    return emit("abs", [x], x.shape, real_dtype(x.dtype))


@locates_errors
def sign(x: Traced, /) -> Traced:
    """−1, 0 or 1; of a complex number x / |x|, and 0 of 0."""
    x = _numbers(x)
    if x.dtype.kind != "c":
        return emit("sign", [x], x.shape, x.dtype)
    size = abs(x)
    return divide(x, where(equal(size, 0), 1, size))


@locates_errors
def tan(x: Traced, /) -> Traced:
    """The tangent; of complex numbers tan x = −i tanh i x, which is finite far from the real axis, too."""
    (x,) = promote(x, floating=True)
    if x.dtype.kind != "c":
        return emit("tan", [x], x.shape, x.dtype)
    return multiply(tanh(multiply(x, 1j)), -1j)


@locates_errors
def log2(x: Traced, /) -> Traced:
    """log₂ x; of complex numbers ln x / ln 2."""
    (x,) = promote(x, floating=True)
    return divide(log(x), _LN_2) if x.dtype.kind == "c" else emit("log2", [x], x.shape, x.dtype)


@locates_errors
def log10(x: Traced, /) -> Traced:
    """log₁₀ x = ln x / ln 10."""
    return divide(log(x), _LN_10)


@locates_errors
def positive(x: Traced, /) -> Traced:
    """x, as an array of its own."""
    x = _numbers(x)
    return x.recorder.array(x.node, x.shape, x.dtype)


@locates_errors
def conj(x: Traced, /) -> Traced:
    """x with its imaginary part negated; real numbers as they are."""
    x = _numbers(x)
    return emit("conj", [x], x.shape, x.dtype) if x.dtype.kind == "c" else positive(x)


@locates_errors
def real(x: Traced, /) -> Traced:
    """The real part; of real numbers themselves."""
    x = _numbers(x)
    return emit("real", [x], x.shape, real_dtype(x.dtype)) if x.dtype.kind == "c" else positive(x)


@locates_errors
def imag(x: Traced, /) -> Traced:
    """The imaginary part; of real numbers 0."""
    x = _numbers(x)
    return emit("imag", [x], x.shape, real_dtype(x.dtype)) if x.dtype.kind == "c" else multiply(positive(x), 0)


@locates_errors
def angle(x: Traced, /) -> Traced:
    """The angle of x in [−π, π]; of real numbers 0 or π. It is NumPy's: the standard has none."""
    (x,) = promote(x, floating=True)
    return emit("angle", [x], x.shape, real_dtype(x.dtype))


@locates_errors
def trunc(x: Traced, /) -> Traced:
    """x without its fraction: towards 0."""
    x = require_ordered(_numbers(x))
    return x if x.dtype.kind != "f" else where(less(x, 0), ceil(x), floor(x))


@locates_errors
def hypot(x1: Operand, x2: Operand, /) -> Traced:
    """√(x1² + x2²), without overflow on the way; its gradient at the origin is 0."""
    x, y = promote(x1, x2, floating=True)
    require_ordered(x)
    shape = broadcast_shape(x, y)
    spread = [emit("broadcast_to", [each], shape, x.dtype, shape=shape) for each in (x, y)]
    pair = emit("stack", spread, (2, *shape), x.dtype, axis=0)
    return emit("norm", [pair], shape, x.dtype, axes=[0])


@locates_errors
def floor_divide(x1: Operand, x2: Operand, /) -> Traced:
    """⌊x1 / x2⌋, by way of the remainder, as NumPy has it: the quotient alone may be rounded to the next number.

    Whole numbers are exact up to 2⁵³, and divided by 0 they give 0.
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
    """Whether x is below 0 or −0. Of NaN it is false."""
    return less(atan2(x, -1.0), 0)


@locates_errors
def copysign(x1: Operand, x2: Operand, /) -> Traced:
    """x1 with the sign of x2."""
    x, y = promote(x1, x2, floating=True)
    size = abs(require_ordered(x))
    return where(signbit(y), negative(size), size)


@locates_errors
def isfinite(x: Traced, /) -> Traced:
    """Whether x is neither infinite nor NaN."""
    x = _numbers(x)
    return emit("is_finite", [x], x.shape, BOOL)


@locates_errors
def isnan(x: Traced, /) -> Traced:
    """Whether x is NaN, which differs from itself."""
    x = _numbers(x)
    return not_equal(x, x)


@locates_errors
def isinf(x: Traced, /) -> Traced:
    """Whether x is ∞ or −∞."""
    x = _numbers(x)
    return equal(abs(x), math.inf)


@locates_errors
def clip(x: Traced, /, min: Bound = None, max: Bound = None) -> Traced:
    """x, but at least min and at most max; in x's dtype."""
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
        raise InputError(f"this is of bool, and not of {x.dtype.name}: compare it with 0")
    return x


logical_and = _logical("logical_and", "logical_and")
logical_or = _logical("logical_or", "logical_or")
logical_xor = _logical("logical_xor", "not_equal")


@locates_errors
def logical_not(x: Traced, /) -> Traced:
    """Not x, of bool."""
    x = _truth(x)
    return emit("logical_not", [x], x.shape, BOOL)


def _bitwise(name: str, logical: Callable[..., Traced]) -> Callable[..., Traced]:
    def function(*arrays: Operand) -> Traced:
        dtype = common_dtype(*arrays)
        if dtype != BOOL:
            raise InputError(
                f"no op works on the bits of {dtype.name}: of bool this is {logical.__name__}; of whole numbers, write "
                "sums and products of powers of 2"
            )
        return logical(*arrays)

    return _named(function, name, logical.__name__)


bitwise_and = _bitwise("bitwise_and", logical_and)
bitwise_or = _bitwise("bitwise_or", logical_or)
bitwise_xor = _bitwise("bitwise_xor", logical_xor)
bitwise_invert = _bitwise("bitwise_invert", logical_not)


@locates_errors
def where(condition: Operand, x1: Operand, x2: Operand, /) -> Traced:
    """x1 where the condition holds, else x2. Each gets its gradient where it was chosen, and 0 elsewhere."""
    chooser = _truth(condition)
    x, y = promote(x1, x2)
    return emit("where", [chooser, x, y], broadcast_shape(chooser, x, y), x.dtype)
