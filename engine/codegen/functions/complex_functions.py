"""Functions of complex numbers, written in the primitives of their real and imaginary parts.

What NumPy computes part by part is computed so, in its order, and has its bits: products by a fused product-add, as
wherever a processor has one; quotients as R. Smith, "Algorithm 116: Complex division" (1962).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from engine.codegen.functions.elementary import EXP_RANGE, exp_parts, write_angle
from engine.codegen.kernels.program import FusedKernel, Instruction, KernelBuilder, Scalar, has_pairs

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
