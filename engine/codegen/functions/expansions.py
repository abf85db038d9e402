"""Functions of the mathematical library, written out in primitives that every processor has.

What is written has no branches: it is the same for every element, so a vector takes no longer than a number. Bounds of
the errors are in docs/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from engine.codegen.functions.complex_functions import split_pairs
from engine.codegen.functions.elementary import (
    CIRCULAR_LIMIT,
    FORMATS,
    at_most,
    format_of,
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
from engine.codegen.kernels.program import FusedKernel, Instruction, KernelBuilder, Level, Scalar
from engine.codegen.kernels.ufuncs import PARITY, ROTATIONS, ROUNDS_OF_FOUR

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
    """Of counter row + column / 2, the first word, or where column is odd the second one, as the bits of a float."""
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
        written.append(_written(builder, instruction, args, loads))
    for result in loop.results:
        builder.store(result.kind, written[result.value])
    if out_of_range:
        builder.store("total", _count(out_of_range))
    return builder.loop()


def _written(builder: KernelBuilder, instruction: Instruction, args: list[Scalar], loads: list[Scalar]) -> Scalar:
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
