"""Functions of the mathematical library, written out in primitives that every processor has.

What is written has no branches: it is the same for every element, so a vector takes no longer than a number. Bounds of
the errors are in docs/accuracy.md.
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

# Functions of complex numbers, written in the primitives of their real and imaginary parts.
#
# What NumPy computes part by part is computed so, in its order, and has its bits: products by a fused product-add, as
# wherever a processor has one; quotients as R. Smith, "Algorithm 116: Complex division" (1962).

#: sizes of which the squares, and sums of two, are normal numbers; and an even power of two that brings others between
_MODERATE: Final = {"float32": (2.0**-40, 2.0**60, 2.0**98), "float64": (2.0**-450, 2.0**500, 2.0**600)}
#: by how much more than a float's range e^x is one power of two, before it is multiplied by what makes it smaller
_BEYOND: Final = 45.0
#: up to where e^x is a number; and from where on tanh x is 1
_STEEP: Final = {"float32": 88.0, "float64": 709.0}
_FLAT: Final = {"float32": 10.0, "float64": 22.0}


class ComplexParts(NamedTuple):
    """A complex number as two scalars."""

    re: Scalar
    im: Scalar


def choose(cond: Scalar, x: ComplexParts, y: ComplexParts) -> ComplexParts:
    """x where the condition holds, else y."""
    return ComplexParts(cond.where(x.re, y.re), cond.where(x.im, y.im))


def complex_product(a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """a · b."""
    return ComplexParts(a.re.fma(b.re, -(a.im * b.im)), a.re.fma(b.im, a.im * b.re))


def quotient(a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """a / b, of which 1 / 0 is infinite: its parts those of a, by 0."""
    lies = b.re.abs() >= b.im.abs()
    large, small = lies.where(b.re, b.im), lies.where(b.im, b.re)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    along, across = lies.where(a.re, a.im), lies.where(a.im, a.re)
    turned = along * ratio
    difference = lies.where(across, turned) - lies.where(turned, across)
    by_zero = b.re.eq(0.0).and_(b.im.eq(0.0))
    infinite = ComplexParts(a.re * math.inf, a.im * math.inf)
    return choose(by_zero, infinite, ComplexParts((along + across * ratio) * scale, difference * scale))


def reciprocal(x: ComplexParts) -> ComplexParts:
    """1 / x."""
    lies = x.re.abs() >= x.im.abs()
    large, small = lies.where(x.re, x.im), lies.where(x.im, x.re)
    ratio = small / large
    size = large + small * ratio
    return ComplexParts(lies.where(1.0, ratio) / size, -(lies.where(ratio, 1.0) / size))


class _Scaled(NamedTuple):
    """A complex number times a power of two for which its size has a square; and whether it was far off."""

    z: ComplexParts
    square: Scalar
    large: Scalar
    small: Scalar

    @classmethod
    def of(cls, z: ComplexParts) -> _Scaled:
        """Scale z."""
        low, high, _ = _MODERATE[z.re.dtype]
        largest = z.re.abs().maximum(z.im.abs())
        found = cls(z, largest, largest > high, largest < low)
        re, im = z.re * found.scale(1), z.im * found.scale(1)
        return found._replace(z=ComplexParts(re, im), square=re.fma(re, im * im))

    def scale(self, exponent: float) -> Scalar:
        """Return the factor that it was multiplied by, to this power."""
        far = _MODERATE[self.square.dtype][2] ** exponent
        return self.large.where(1 / far, self.small.where(far, 1.0))


def absolute(x: ComplexParts) -> Scalar:
    """|x|, infinite where either part is (C99)."""
    found = _Scaled.of(x)
    return _is_infinite(x).where(math.inf, found.square.sqrt() * found.scale(-1))


def _is_infinite(z: ComplexParts) -> Scalar:
    """Whether either part is."""
    return z.re.abs().eq(math.inf).or_(z.im.abs().eq(math.inf))


def angle(z: ComplexParts) -> Scalar:
    """The angle of z, from −π to π."""
    return write_angle(z.im, z.re)


def logarithm(z: ComplexParts) -> ComplexParts:
    """log |z| + i · angle z; next to the unit circle by |z|² − 1, of which the squares are taken apart."""
    found = _Scaled.of(z)
    larger, smaller = z.re.abs().maximum(z.im.abs()), z.re.abs().minimum(z.im.abs())
    is_near = (found.square > 0.5).and_(found.square < 2.0).and_(found.large.or_(found.small).not_())
    more = is_near.where((larger - 1).fma(larger + 1, smaller * smaller), 0.0)
    far = math.log(_MODERATE[z.re.dtype][2])
    scale = found.large.where(far, found.small.where(-far, 0.0))
    size = is_near.where(more.log1p() * 0.5, found.square.log() * 0.5 + scale)
    return ComplexParts(_is_infinite(z).where(math.inf, size), angle(z))


def exponential(z: ComplexParts) -> ComplexParts:
    """eᶻ = eˣ (cos y + i sin y), whose parts may be numbers where eˣ is none; as C99 has it at infinity."""
    limit = EXP_RANGE[z.re.dtype][1] + _BEYOND
    parts, more = exp_parts(z.re, _BEYOND), (z.re.maximum(limit) - limit).exp()
    no_angle = z.im.ne(z.im).and_(z.re.abs().eq(math.inf))
    cos = no_angle.where(1.0, z.im.cos())
    sin = no_angle.and_(z.re < 0.0).where(1.0, z.im.sin())
    re, im = (parts.power.scale(parts.value * of) for of in (cos, sin))
    return ComplexParts(_times(re, more), _times(im, more))


def _times(x: Scalar, more: Scalar) -> Scalar:
    """A product with a factor that may be infinite, of which 0 stays 0."""
    return x * x.eq(0.0).where(1.0, more)


class _Hyperbolic(NamedTuple):
    """sinh x and cosh x, but for a factor: 1 up to `_STEEP`, and beyond e to the power of what x is more."""

    sinh: Scalar
    cosh: Scalar
    more: Scalar

    def times(self, size: Scalar, other: Scalar) -> Scalar:
        """One of them by another number."""
        return _times(size * other, self.more)


def _hyperbolic(x: Scalar) -> _Hyperbolic:
    near = x.abs().minimum(_STEEP[x.dtype])
    less_one = near.expm1()
    power = less_one + 1
    slope = less_one / power
    cosh = (power + (1 - slope)) * 0.5
    return _Hyperbolic(((less_one + slope) * 0.5).copysign(x), cosh, (x.abs() - near).exp())


def sinh(z: ComplexParts) -> ComplexParts:
    """sinh z = sinh x cos y + i cosh x sin y."""
    of = _hyperbolic(z.re)
    return ComplexParts(of.times(of.sinh, z.im.cos()), of.times(of.cosh, z.im.sin()))


def cosh(z: ComplexParts) -> ComplexParts:
    """cosh z = cosh x cos y + i sinh x sin y."""
    of = _hyperbolic(z.re)
    return ComplexParts(of.times(of.cosh, z.im.cos()), of.times(of.sinh, z.im.sin()))


def sin(z: ComplexParts) -> ComplexParts:
    """sin z = sin x cosh y + i cos x sinh y."""
    of = _hyperbolic(z.im)
    return ComplexParts(of.times(of.cosh, z.re.sin()), of.times(of.sinh, z.re.cos()))


def cos(z: ComplexParts) -> ComplexParts:
    """cos z = cos x cosh y − i sin x sinh y."""
    of = _hyperbolic(z.im)
    return ComplexParts(of.times(of.cosh, z.re.cos()), -of.times(of.sinh, z.re.sin()))


def tanh(z: ComplexParts) -> ComplexParts:
    """tanh z = (sinh x cosh x + i sin y cos y) / (sinh² x + cos² y): sums of nothing that cancels."""
    near = z.re.abs().minimum(_FLAT[z.re.dtype])
    angle = z.re.abs().eq(math.inf).and_(z.im.ne(z.im)).where(0.0, z.im)
    of, cos, sin = _hyperbolic(near), angle.cos(), angle.sin()
    size = of.sinh.fma(of.sinh, cos * cos)
    fading = (near - z.re.abs()).exp()
    along = (of.sinh * of.cosh / size).copysign(z.re)
    return ComplexParts(along, sin * cos / size * fading * fading)


def root(z: ComplexParts) -> ComplexParts:
    """√z, the root with a real part that is not negative; at infinity as C99 has it."""
    scaled = _Scaled.of(z)
    back = scaled.scale(-0.5)
    long = ((scaled.z.re.abs() + scaled.square.sqrt()) * 0.5).sqrt()
    short = long.eq(0.0).where(0.0, scaled.z.im.abs() / (long + long))
    right = z.re >= 0.0
    found = ComplexParts(right.where(long, short) * back, (right.where(short, long) * back).copysign(z.im))
    return _at_infinity(z, found)


def _at_infinity(z: ComplexParts, found: ComplexParts) -> ComplexParts:
    """A root, of what has an infinite part: along the real axis, unless the imaginary part is infinite."""
    along = z.re.abs().eq(math.inf)
    right, left = z.re.eq(math.inf), z.re.eq(-math.inf)
    nothing = z.im - z.im  # 0, or NaN
    re = right.where(math.inf, left.where(nothing.abs(), found.re))
    im = left.where(z.re.abs().copysign(z.im), along.where(nothing.copysign(z.im), found.im))
    upwards = z.im.abs().eq(math.inf)
    return choose(upwards, ComplexParts(z.im.abs(), z.im), ComplexParts(re, im))


#: writers of the primitives of complex numbers, of pairs and scalars
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


def split_pairs(loop: FusedKernel) -> FusedKernel:
    """Write complex numbers in their parts: pairs are only loaded, taken apart, put together and stored."""
    if not has_pairs(loop):
        return loop
    builder = KernelBuilder(loop.dtype, loop.row_axes)
    loads = [builder.load(operand.level, operand.type) for operand in loop.operands]
    written: list[Scalar | ComplexParts] = []
    for instruction in loop.instructions:
        written.append(_written(builder, instruction, [written[a] for a in instruction.args], loads))
    for result in loop.results:
        value = written[result.value]
        builder.store(result.kind, builder.apply("pair", *value) if isinstance(value, ComplexParts) else value)
    return builder.loop()


def _written(
    builder: KernelBuilder, instruction: Instruction, args: list[Scalar | ComplexParts], loads: list[Scalar]
) -> Scalar | ComplexParts:
    op, data = instruction.op, instruction.data
    if op == "load":
        x = loads[data]
        return ComplexParts(x.real(), x.imag()) if x.type == "pair" else x
    if op == "constant":
        return builder.integer(data) if instruction.type == "int" else builder.constant(data)
    if instruction.type == "pair" or any(isinstance(a, ComplexParts) for a in args):
        found: Scalar | ComplexParts = COMPLEX_WRITERS[op](*args)
        return found
    return builder.apply(op, *(a for a in args if isinstance(a, Scalar)))


# Products of a row in any order: where that may be another number than in the order of the row.

#: beyond, products of a few more elements might overflow: a power of two below the largest number
_MOST: Final = {"float32": 2.0**126, "float64": 2.0**1022}


def may_leave_range(x: Scalar) -> Scalar:
    """Whether the product of some elements of the row may overflow, or be subnormal. NaN makes no difference.

    Each that has no 0 lies between the products of all elements that are less than 1 in size, but not 0, and of all
    that are greater.
    """
    size = x.abs()
    greatest, least = (size > 1.0).where(size, 1.0), (size > 0.0).where(at_most(size, 1.0), 1.0)
    is_within = (greatest.row_prod() < _MOST[x.dtype]).and_(least.row_prod() >= format_of(x).smallest_normal)
    return is_within.not_()


# The remainder of a division, written in IEEE primitives: exact, where the quotient has few places.

#: |a / b| below which the remainder is found in one step
QUOTIENT_LIMIT: Final = {"float32": 2.0**22, "float64": 2.0**51}


def write_mod(a: Scalar, b: Scalar) -> Scalar:
    """a − b ⌊a / b⌋ with the sign of b, for |a / b| < `QUOTIENT_LIMIT`; NaN where b is 0, or a infinite."""
    size, step = a.abs(), b.abs()
    # a quotient may have been rounded up to a whole number, one too many: what is left is exact in either case
    left = (-(size / step).floor()).fma(step, size)
    rest = (size < step).where(size, (left < 0.0).where(left + step, left)).copysign(a)
    is_across = (rest < 0.0).where(b > 0.0, (rest > 0.0).and_(b < 0.0))
    return rest.eq(0.0).where(rest.abs().copysign(b), is_across.where(rest + b, rest))


def has_long_quotient(a: Scalar, b: Scalar) -> Scalar:
    """Whether |a / b| is too large for `write_mod`, both being numbers and b not 0."""
    size, step = a.abs(), b.abs()
    is_number = (size < math.inf).and_(step > 0.0)
    return (size / step).ge(QUOTIENT_LIMIT[a.dtype]).and_(is_number)


# Threefry-2x32 written in integers of the language, which are as wide as its floats: words of 32 bits in them.
#
# In a kernel of float64 they are the lower halves of wider integers, and what is carried beyond is masked away.

_MASK = 2**32 - 1


def write_threefry_uniform(first: Scalar, second: Scalar, row: Scalar, column: Scalar) -> Scalar:
    """The uniform number in [0, 1) of counter row + column < 2³² under a key, all of them as the bits of floats."""
    x, y = _mixed(first, second, _sum(row.bits(), column.bits()))
    form = FORMATS[x.dtype]
    drawn = x.ixor(y) if form.width == 32 else x.shl(_integer(x, 32)).ior(y)
    upper = _shifted(drawn, form.width - form.mantissa, 2**form.mantissa - 1)
    return upper.ior(_integer(upper, form.bits_of(1.0))).from_bits() - 1.0


def write_threefry_bits(first: Scalar, second: Scalar, row: Scalar, column: Scalar) -> Scalar:
    """The exclusive or of both words of that counter, as the bits of a float."""
    x, y = _mixed(first, second, _sum(row.bits(), column.bits()))
    return x.ixor(y).from_bits()


def write_threefry_word(first: Scalar, second: Scalar, row: Scalar, column: Scalar) -> Scalar:
    """Write the first word of counter row + column / 2, or for odd columns the second, as the bits of a float."""
    x, y = _mixed(first, second, _sum(row.bits(), _shifted(column.bits(), 1, 2**31 - 1)))
    all_if_odd = _integer(column, 0).isub(column.bits().iand(_integer(column, 1)))
    return x.ixor(x.ixor(y).iand(all_if_odd)).from_bits()


def _mixed(first: Scalar, second: Scalar, counter: Scalar) -> tuple[Scalar, Scalar]:
    """The words of a counter below 2³² under a key."""
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
    """Make a number of the kernel of `like`: a signed one, which is how all printers write it."""
    width = FORMATS[like.dtype].width
    return like.builder.integer(number - 2**width if number >= 2 ** (width - 1) else number)


def _sum(a: Scalar, b: Scalar) -> Scalar:
    """a + b, modulo 2³²."""
    return _word(a.iadd(b))


def _shifted(word: Scalar, bits: int, mask: int) -> Scalar:
    """The word without its lower `bits`; of what comes in from the sign, the mask leaves nothing."""
    return word.ashr(_integer(word, bits)).iand(_integer(word, mask))


def _word(found: Scalar) -> Scalar:
    """The lower 32 bits."""
    return found if FORMATS[found.dtype].width == 32 else found.iand(_integer(found, _MASK))


WRITERS: Final[Mapping[str, Callable[..., Scalar]]] = {
    "exp": write_exp,
    "expm1": write_expm1,
    "log": write_log,
    "log1p": write_log1p,
    "log2": write_log2,
    "tanh": write_tanh,
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


#: whether arguments are out of the range that a function is written for, or a product is right for in any order
OUT_OF_RANGE: Final[Mapping[str, Callable[..., Scalar]]] = {
    "sin": _is_far,
    "cos": _is_far,
    "lgamma": lambda x: x < 0.0,
    "trigamma": lambda x: x < 0.0,
    "mod": has_long_quotient,
    "row_prod": may_leave_range,
}


def reports_range(loop: FusedKernel) -> bool:
    """Whether `expand_functions` adds a result, which says that arguments are out of range."""
    return any(i.op in OUT_OF_RANGE for i in split_pairs(loop).instructions)


def expand_functions(loop: FusedKernel) -> FusedKernel:
    """The kernel with FUNCTIONS and RANDOM written in ARITHMETIC and BITS, and PAIRS in PAIR_PARTS; all else stays.

    Where `reports_range` is true, there is one result more, the last: a total, which is 0 where no arguments are
    `OUT_OF_RANGE`. Where it is not, all other results are to be computed in another way.
    """
    loop = split_pairs(loop)
    builder = KernelBuilder(loop.dtype, loop.row_axes)
    loads = [builder.load(operand.level, operand.type) for operand in loop.operands]
    written: list[Scalar] = []
    out_of_range: list[Scalar] = []
    for instruction in loop.instructions:
        args = [written[a] for a in instruction.args]
        if instruction.op in OUT_OF_RANGE:
            out_of_range.append(OUT_OF_RANGE[instruction.op](*args))
        written.append(_expanded_scalar(builder, instruction, args, loads))
    for result in loop.results:
        builder.store(result.kind, written[result.value])
    if out_of_range:
        builder.store("total", _count(out_of_range))
    return builder.loop()


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
    """Count how often any of them is true in a row, or whether it is, for a row itself."""
    first, *others = conditions
    for other in others:
        first = first.or_(other)
    count = first.where(1.0, 0.0)
    return count if count.level == Level.ROW else count.row_sum()
