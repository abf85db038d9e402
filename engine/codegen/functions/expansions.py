"""Expansions: fused kernels whose mathematical functions are written in primitives that every processor has.

Expansions have no branches, so that a vector takes as long as a single number. Error bounds are in docs/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from engine.codegen.functions.elementary import (
    CIRCULAR_LIMIT,
    EXP_RANGE,
    FORMATS,
    at_most,
    exp_parts,
    format_of,
    write_angle,
    write_cos,
    write_exp,
    write_expm1,
    write_log,
    write_log1p,
    write_log2,
    write_sech2,
    write_sin,
    write_tanh,
)
from engine.codegen.functions.special_functions import (
    write_erf,
    write_erfc,
    write_erfinv,
    write_lgamma,
    write_log_ndtr,
    write_trigamma,
)
from engine.codegen.kernels.block_program import PARITY, ROTATIONS, ROUNDS_OF_FOUR
from engine.codegen.kernels.program import FusedKernel, Instruction, KernelBuilder, Level, Scalar, has_pairs

# Functions of complex numbers, written in primitives on their real and imaginary parts.
#
# Operations that NumPy computes by parts follow its order and give its bits. Products use fused multiply-add, as NumPy
# does on processors that have it. Quotients follow R. Smith, "Algorithm 116: Complex division" (1962).

#: bounds between which squares, and sums of two squares, are normal numbers; the power of two that scales others there
_MODERATE: Final = {"float32": (2.0**-40, 2.0**60, 2.0**98), "float64": (2.0**-450, 2.0**500, 2.0**600)}
#: excess over the range of exp up to which e^x is kept as a power of two, until a small factor brings it into range
_BEYOND: Final = 45.0
#: x up to which e^x is finite; and x from which tanh x rounds to 1
_STEEP: Final = {"float32": 88.0, "float64": 709.0}
_FLAT: Final = {"float32": 10.0, "float64": 22.0}


class ComplexParts(NamedTuple):
    """A complex number as two scalars."""

    re: Scalar
    im: Scalar


def choose(cond: Scalar, x: ComplexParts, y: ComplexParts) -> ComplexParts:
    """Write x where the condition holds, else y."""
    return ComplexParts(cond.where(x.re, y.re), cond.where(x.im, y.im))


def complex_product(a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a · b."""
    return ComplexParts(a.re.fma(b.re, -(a.im * b.im)), a.re.fma(b.im, a.im * b.re))


def quotient(a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a / b. Division by zero gives the parts of a times infinity."""
    real_is_larger = b.re.abs() >= b.im.abs()
    large, small = real_is_larger.where(b.re, b.im), real_is_larger.where(b.im, b.re)
    ratio = small / large
    # Divide by the larger part of b first: its squared size could overflow.
    scale = 1 / (large + small * ratio)
    along, across = real_is_larger.where(a.re, a.im), real_is_larger.where(a.im, a.re)
    scaled_along = along * ratio
    difference = real_is_larger.where(across, scaled_along) - real_is_larger.where(scaled_along, across)
    by_zero = b.re.eq(0.0).and_(b.im.eq(0.0))
    infinite = ComplexParts(a.re * math.inf, a.im * math.inf)
    return choose(by_zero, infinite, ComplexParts((along + across * ratio) * scale, difference * scale))


def reciprocal(x: ComplexParts) -> ComplexParts:
    """Write 1 / x."""
    real_is_larger = x.re.abs() >= x.im.abs()
    large, small = real_is_larger.where(x.re, x.im), real_is_larger.where(x.im, x.re)
    ratio = small / large
    size = large + small * ratio
    return ComplexParts(real_is_larger.where(1.0, ratio) / size, -(real_is_larger.where(ratio, 1.0) / size))


class _Scaled(NamedTuple):
    """A complex number times a power of two, so that its squared size neither overflows nor underflows.

    `large` and `small` tell whether the number was out of the moderate range.
    """

    z: ComplexParts
    square: Scalar
    large: Scalar
    small: Scalar

    @classmethod
    def of(cls, z: ComplexParts) -> _Scaled:
        """Scale z."""
        low, high, _ = _MODERATE[z.re.dtype]
        largest = z.re.abs().maximum(z.im.abs())
        unscaled = cls(z, largest, largest > high, largest < low)
        re, im = z.re * unscaled.scale(1), z.im * unscaled.scale(1)
        return unscaled._replace(z=ComplexParts(re, im), square=re.fma(re, im * im))

    def scale(self, exponent: float) -> Scalar:
        """Return the factor that z was multiplied by, raised to this power."""
        factor = _MODERATE[self.square.dtype][2] ** exponent
        return self.large.where(1 / factor, self.small.where(factor, 1.0))


def absolute(x: ComplexParts) -> Scalar:
    """Write |x|, infinite if either part is (C99)."""
    scaled = _Scaled.of(x)
    return _is_infinite(x).where(math.inf, scaled.square.sqrt() * scaled.scale(-1))


def _is_infinite(z: ComplexParts) -> Scalar:
    """Write whether either part is infinite."""
    return z.re.abs().eq(math.inf).or_(z.im.abs().eq(math.inf))


def angle(z: ComplexParts) -> Scalar:
    """Write the angle of z, from −π to π."""
    return write_angle(z.im, z.re)


def logarithm(z: ComplexParts) -> ComplexParts:
    """Write log |z| + i · angle z. Near the unit circle it uses |z|² − 1, with a² − 1 as (a − 1) (a + 1)."""
    scaled = _Scaled.of(z)
    larger, smaller = z.re.abs().maximum(z.im.abs()), z.re.abs().minimum(z.im.abs())
    is_near = (scaled.square > 0.5).and_(scaled.square < 2.0).and_(scaled.large.or_(scaled.small).not_())
    square_minus_one = is_near.where((larger - 1).fma(larger + 1, smaller * smaller), 0.0)
    far = math.log(_MODERATE[z.re.dtype][2])
    scale = scaled.large.where(far, scaled.small.where(-far, 0.0))
    size = is_near.where(square_minus_one.log1p() * 0.5, scaled.square.log() * 0.5 + scale)
    return ComplexParts(_is_infinite(z).where(math.inf, size), angle(z))


def exponential(z: ComplexParts) -> ComplexParts:
    """Write eᶻ = eˣ (cos y + i sin y). Its parts may be finite where eˣ is not; infinities follow C99."""
    limit = EXP_RANGE[z.re.dtype][1] + _BEYOND
    parts, excess = exp_parts(z.re, _BEYOND), (z.re.maximum(limit) - limit).exp()
    is_angle_undefined = z.im.ne(z.im).and_(z.re.abs().eq(math.inf))
    cos = is_angle_undefined.where(1.0, z.im.cos())
    sin = is_angle_undefined.and_(z.re < 0.0).where(1.0, z.im.sin())
    re, im = (parts.power.scale(parts.value * factor) for factor in (cos, sin))
    return ComplexParts(_times(re, excess), _times(im, excess))


def _times(x: Scalar, factor: Scalar) -> Scalar:
    """Write a product with a factor that may be infinite, where 0 stays 0."""
    return x * x.eq(0.0).where(1.0, factor)


class _Hyperbolic(NamedTuple):
    """sinh x and cosh x divided by `excess_factor`: 1 up to `_STEEP`, beyond that e to the power of the excess."""

    sinh: Scalar
    cosh: Scalar
    excess_factor: Scalar

    def times(self, value: Scalar, other: Scalar) -> Scalar:
        """Write one of them times another number."""
        return _times(value * other, self.excess_factor)


def _hyperbolic(x: Scalar) -> _Hyperbolic:
    near = x.abs().minimum(_STEEP[x.dtype])
    less_one = near.expm1()
    power = less_one + 1
    slope = less_one / power
    cosh = (power + (1 - slope)) * 0.5
    return _Hyperbolic(((less_one + slope) * 0.5).copysign(x), cosh, (x.abs() - near).exp())


def sinh(z: ComplexParts) -> ComplexParts:
    """Write sinh z = sinh x cos y + i cosh x sin y."""
    parts = _hyperbolic(z.re)
    return ComplexParts(parts.times(parts.sinh, z.im.cos()), parts.times(parts.cosh, z.im.sin()))


def cosh(z: ComplexParts) -> ComplexParts:
    """Write cosh z = cosh x cos y + i sinh x sin y."""
    parts = _hyperbolic(z.re)
    return ComplexParts(parts.times(parts.cosh, z.im.cos()), parts.times(parts.sinh, z.im.sin()))


def sin(z: ComplexParts) -> ComplexParts:
    """Write sin z = sin x cosh y + i cos x sinh y."""
    parts = _hyperbolic(z.im)
    return ComplexParts(parts.times(parts.cosh, z.re.sin()), parts.times(parts.sinh, z.re.cos()))


def cos(z: ComplexParts) -> ComplexParts:
    """Write cos z = cos x cosh y − i sin x sinh y."""
    parts = _hyperbolic(z.im)
    return ComplexParts(parts.times(parts.cosh, z.re.cos()), -parts.times(parts.sinh, z.re.sin()))


def tanh(z: ComplexParts) -> ComplexParts:
    """Write tanh z = (sinh x cosh x + i sin y cos y) / (sinh² x + cos² y), in which no sum cancels."""
    clamped = z.re.abs().minimum(_FLAT[z.re.dtype])
    angle = z.re.abs().eq(math.inf).and_(z.im.ne(z.im)).where(0.0, z.im)
    parts, cos, sin = _hyperbolic(clamped), angle.cos(), angle.sin()
    size = parts.sinh.fma(parts.sinh, cos * cos)
    fading = (clamped - z.re.abs()).exp()
    along = (parts.sinh * parts.cosh / size).copysign(z.re)
    return ComplexParts(along, sin * cos / size * fading * fading)


def root(z: ComplexParts) -> ComplexParts:
    """Write √z with a non-negative real part; infinities follow C99."""
    scaled = _Scaled.of(z)
    unscale = scaled.scale(-0.5)
    # Compute the larger part of the root first. The other follows by a division, without cancellation.
    long = ((scaled.z.re.abs() + scaled.square.sqrt()) * 0.5).sqrt()
    short = long.eq(0.0).where(0.0, scaled.z.im.abs() / (long + long))
    right = z.re >= 0.0
    result = ComplexParts(right.where(long, short) * unscale, (right.where(short, long) * unscale).copysign(z.im))
    return _at_infinity(z, result)


def _at_infinity(z: ComplexParts, result: ComplexParts) -> ComplexParts:
    """Write the root of a number with an infinite part: along the real axis, unless the imaginary part is infinite."""
    along = z.re.abs().eq(math.inf)
    right, left = z.re.eq(math.inf), z.re.eq(-math.inf)
    zero_or_nan = z.im - z.im  # 0, or NaN
    re = right.where(math.inf, left.where(zero_or_nan.abs(), result.re))
    im = left.where(z.re.abs().copysign(z.im), along.where(zero_or_nan.copysign(z.im), result.im))
    is_im_infinite = z.im.abs().eq(math.inf)
    return choose(is_im_infinite, ComplexParts(z.im.abs(), z.im), ComplexParts(re, im))


#: primitive → its writer, for complex numbers as parts and for scalars
COMPLEX_WRITERS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "neg": lambda x: ComplexParts(-x.re, -x.im),
        "conj": lambda x: ComplexParts(x.re, -x.im),
        "add": lambda a, b: ComplexParts(a.re + b.re, a.im + b.im),
        "sub": lambda a, b: ComplexParts(a.re - b.re, a.im - b.im),
        "mul": complex_product,
        "div": quotient,
        "reciprocal": reciprocal,
        "eq": lambda a, b: a.re.eq(b.re).and_(a.im.eq(b.im)),
        "ne": lambda a, b: a.re.ne(b.re).or_(a.im.ne(b.im)),
        "select": choose,
        "abs": absolute,
        "angle": angle,
        "log": logarithm,
        "sqrt": root,
        "exp": exponential,
        "sin": sin,
        "cos": cos,
        "sinh": sinh,
        "cosh": cosh,
        "tanh": tanh,
        "real": lambda x: x.re,
        "imag": lambda x: x.im,
        "pair": ComplexParts,
    }
)


def split_pairs(fused: FusedKernel) -> FusedKernel:
    """Rewrite complex numbers in their parts: pairs are then only loaded, split, made and stored."""
    if not has_pairs(fused):
        return fused
    builder = KernelBuilder(fused.dtype, fused.row_axes)
    loads = [builder.load(operand.level, operand.type) for operand in fused.operands]
    written: list[Scalar | ComplexParts] = []
    for instruction in fused.instructions:
        written.append(_split_instruction(builder, instruction, [written[a] for a in instruction.args], loads))
    for result in fused.results:
        value = written[result.value]
        builder.store(result.kind, builder.apply("pair", *value) if isinstance(value, ComplexParts) else value)
    return builder.build()


def _split_instruction(
    builder: KernelBuilder, instruction: Instruction, args: list[Scalar | ComplexParts], loads: list[Scalar]
) -> Scalar | ComplexParts:
    op, data = instruction.op, instruction.data
    if op == "load":
        x = loads[data]
        return ComplexParts(x.real(), x.imag()) if x.type == "pair" else x
    if op == "constant":
        return builder.integer(data) if instruction.type == "int" else builder.constant(data)
    if instruction.type == "pair" or any(isinstance(a, ComplexParts) for a in args):
        result: Scalar | ComplexParts = COMPLEX_WRITERS[op](*args)
        return result
    return builder.apply(op, *(a for a in args if isinstance(a, Scalar)))


# Products of a row in any order: the condition under which another order may give another result.

#: bound on products of a row's elements: a power of two below the largest number
_MOST: Final = {"float32": 2.0**126, "float64": 2.0**1022}


def may_leave_range(x: Scalar) -> Scalar:
    """Write whether the product of some elements of a row may overflow or be subnormal. NaN makes no difference.

    The product of any elements without a 0 lies between two products: that of all elements with a size below 1 except
    0, and that of all with a size above 1.
    """
    size = x.abs()
    greatest, least = (size > 1.0).where(size, 1.0), (size > 0.0).where(at_most(size, 1.0), 1.0)
    is_within = (greatest.row_prod() < _MOST[x.dtype]).and_(least.row_prod() >= format_of(x).smallest_normal)
    return is_within.not_()


# The remainder of a division, written in IEEE primitives: exact if the quotient has few digits.

#: |a / b| below which the remainder takes one step
QUOTIENT_LIMIT: Final = {"float32": 2.0**22, "float64": 2.0**51}


def write_mod(a: Scalar, b: Scalar) -> Scalar:
    """Write a − b ⌊a / b⌋ with the sign of b, for |a / b| < `QUOTIENT_LIMIT`; NaN if b is 0 or a infinite."""
    size, divisor = a.abs(), b.abs()
    # The quotient may have been rounded up to the next integer. The remainder is then negative, but exact in either
    # case.
    remainder = (-(size / divisor).floor()).fma(divisor, size)
    signed = (size < divisor).where(size, (remainder < 0.0).where(remainder + divisor, remainder)).copysign(a)
    is_across = (signed < 0.0).where(b > 0.0, (signed > 0.0).and_(b < 0.0))
    return signed.eq(0.0).where(signed.abs().copysign(b), is_across.where(signed + b, signed))


def has_long_quotient(a: Scalar, b: Scalar) -> Scalar:
    """Write whether |a / b| is too large for `write_mod`, for finite a and b other than 0."""
    size, divisor = a.abs(), b.abs()
    is_number = (size < math.inf).and_(divisor > 0.0)
    return (size / divisor).ge(QUOTIENT_LIMIT[a.dtype]).and_(is_number)


# Threefry-2x32 written in the language's integers, which are as wide as its floats and hold words of 32 bits.
#
# In a float64 kernel, words are the lower halves of 64-bit integers, and carries beyond them are masked off.

_MASK = 2**32 - 1


def write_threefry_uniform(first: Scalar, second: Scalar, row: Scalar, column: Scalar) -> Scalar:
    """Write the uniform number in [0, 1) of counter row + column < 2³² under a key; operands are the bits of floats."""
    x, y = _mixed(first, second, _sum(row.bits(), column.bits()))
    form = FORMATS[x.dtype]
    drawn = x.ixor(y) if form.width == 32 else x.shl(_integer(x, 32)).ior(y)
    upper = _shifted(drawn, form.width - form.mantissa, 2**form.mantissa - 1)
    return upper.ior(_integer(upper, form.bits_of(1.0))).from_bits() - 1.0


def write_threefry_bits(first: Scalar, second: Scalar, row: Scalar, column: Scalar) -> Scalar:
    """Write the exclusive or of both words of this counter, as the bits of a float."""
    x, y = _mixed(first, second, _sum(row.bits(), column.bits()))
    return x.ixor(y).from_bits()


def write_threefry_word(first: Scalar, second: Scalar, row: Scalar, column: Scalar) -> Scalar:
    """Write the first word of counter row + column // 2, or for odd columns the second, as the bits of a float."""
    x, y = _mixed(first, second, _sum(row.bits(), _shifted(column.bits(), 1, 2**31 - 1)))
    # The language has no integer select: a mask of all ones or zeros chooses between the words.
    all_if_odd = _integer(column, 0).isub(column.bits().iand(_integer(column, 1)))
    return x.ixor(x.ixor(y).iand(all_if_odd)).from_bits()


def _mixed(first: Scalar, second: Scalar, counter: Scalar) -> tuple[Scalar, Scalar]:
    """Write the words of a counter below 2³² under a key."""
    keys = first.bits(), second.bits(), first.bits().ixor(second.bits()).ixor(_integer(first, PARITY))
    x, y = keys[0], _sum(counter, keys[1])
    for number in range(ROUNDS_OF_FOUR):
        for bits in ROTATIONS[number % 2]:
            x = _sum(x, y)
            rotated = _word(y.shl(_integer(y, bits))).ior(_shifted(y, 32 - bits, 2**bits - 1))
            y = rotated.ixor(x)
        x = _sum(x, keys[(number + 1) % 3])
        y = _sum(_sum(y, keys[(number + 2) % 3]), _integer(y, number + 1))
    return x, y


def _integer(like: Scalar, number: int) -> Scalar:
    """Return an integer constant in the kernel of `like`, as a signed number, as all printers write it."""
    width = FORMATS[like.dtype].width
    return like.builder.integer(number - 2**width if number >= 2 ** (width - 1) else number)


def _sum(a: Scalar, b: Scalar) -> Scalar:
    """Write a + b, modulo 2³²."""
    return _word(a.iadd(b))


def _shifted(word: Scalar, bits: int, mask: int) -> Scalar:
    """Write the word without its lower `bits`. The mask removes the copies of the sign bit that the shift brings in."""
    return word.ashr(_integer(word, bits)).iand(_integer(word, mask))


def _word(integer: Scalar) -> Scalar:
    """Write the lower 32 bits."""
    return integer if FORMATS[integer.dtype].width == 32 else integer.iand(_integer(integer, _MASK))


WRITERS: Final[Mapping[str, Callable[..., Scalar]]] = {
    "exp": write_exp,
    "expm1": write_expm1,
    "log": write_log,
    "log1p": write_log1p,
    "log2": write_log2,
    "tanh": write_tanh,
    "sech2": write_sech2,
    "sin": write_sin,
    "cos": write_cos,
    "erf": write_erf,
    "erfc": write_erfc,
    "lgamma": write_lgamma,
    "trigamma": write_trigamma,
    "erfinv": write_erfinv,
    "log_ndtr": write_log_ndtr,
    "mod": write_mod,
    "threefry_uniform": write_threefry_uniform,
    "threefry_bits": write_threefry_bits,
    "threefry_word": write_threefry_word,
}


def _is_far(x: Scalar) -> Scalar:
    return x.abs() > CIRCULAR_LIMIT[x.dtype]


#: conditions that arguments are outside the range of an expansion, or that a product depends on its order
OUT_OF_RANGE: Final[Mapping[str, Callable[..., Scalar]]] = {
    "sin": _is_far,
    "cos": _is_far,
    "lgamma": lambda x: x < 0.0,
    "trigamma": lambda x: x < 0.0,
    "mod": has_long_quotient,
    "row_prod": may_leave_range,
}


def reports_range(fused: FusedKernel) -> bool:
    """Whether `expand_functions` adds a result that reports arguments out of range."""
    return any(i.op in OUT_OF_RANGE for i in split_pairs(fused).instructions)


def expand_functions(fused: FusedKernel) -> FusedKernel:
    """Write FUNCTIONS and RANDOM in ARITHMETIC and BITS, and PAIRS in PAIR_PARTS, and leave everything else.

    If `reports_range`, there is an additional last result: a total that is 0 if no argument is `OUT_OF_RANGE`. If it is
    not 0, all other results have to be computed in another way.
    """
    fused = split_pairs(fused)
    builder = KernelBuilder(fused.dtype, fused.row_axes)
    loads = [builder.load(operand.level, operand.type) for operand in fused.operands]
    written: list[Scalar] = []
    out_of_range: list[Scalar] = []
    for instruction in fused.instructions:
        args = [written[a] for a in instruction.args]
        # Conditions are computed from the expanded operands, so they need no functions themselves.
        if instruction.op in OUT_OF_RANGE:
            out_of_range.append(OUT_OF_RANGE[instruction.op](*args))
        written.append(_expanded_scalar(builder, instruction, args, loads))
    for result in fused.results:
        builder.store(result.kind, written[result.value])
    if out_of_range:
        builder.store("total", _count(out_of_range))
    return builder.build()


def _expanded_scalar(
    builder: KernelBuilder, instruction: Instruction, args: list[Scalar], loads: list[Scalar]
) -> Scalar:
    match instruction.op:
        case "load":
            operand: int = instruction.data
            return loads[operand]
        case "constant" if instruction.type == "int":
            return builder.integer(instruction.data)
        case "constant":
            return builder.constant(instruction.data)
        case op if op in WRITERS:
            return WRITERS[op](*args)
        case op:
            return builder.apply(op, *args)


def _count(conditions: list[Scalar]) -> Scalar:
    """Count how often any condition is true in a row; for ROW conditions, whether one is."""
    any_of_them, *others = conditions
    for other in others:
        any_of_them = any_of_them.or_(other)
    count = any_of_them.where(1.0, 0.0)
    return count if count.level == Level.ROW else count.row_sum()
