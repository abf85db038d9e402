"""Threefry-2x32 written in integers of the language, which are as wide as its floats: words of 32 bits in them.

In a kernel of float64 they are the lower halves of wider integers, and what is carried beyond is masked away.
"""

from __future__ import annotations

from engine.functions.float_parts import FORMATS
from engine.loops.program import Scalar
from engine.loops.threefry_arrays import PARITY, ROTATIONS, ROUNDS_OF_FOUR

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
            y = _rotated(y, bits).ixor(x)
        x = _sum(x, keys[(number + 1) % 3])
        y = _sum(_sum(y, keys[(number + 2) % 3]), _integer(y, number + 1))
    return x, y


def _integer(like: Scalar, number: int) -> Scalar:
    """A number of the kernel that `like` is of: as a signed one, which is how all printers write it."""
    width = FORMATS[like.dtype].width
    return like.builder.integer(number - 2**width if number >= 2 ** (width - 1) else number)


def _sum(a: Scalar, b: Scalar) -> Scalar:
    """a + b, modulo 2³²."""
    return _word(a.iadd(b))


def _rotated(word: Scalar, bits: int) -> Scalar:
    """Rotate a word to the left."""
    return _word(word.shl(_integer(word, bits))).ior(_shifted(word, 32 - bits, 2**bits - 1))


def _shifted(word: Scalar, bits: int, mask: int) -> Scalar:
    """The word without its lower `bits`; of what comes in from the sign, the mask leaves nothing."""
    return word.ashr(_integer(word, bits)).iand(_integer(word, mask))


def _word(found: Scalar) -> Scalar:
    """The lower 32 bits."""
    return found if FORMATS[found.dtype].width == 32 else found.iand(_integer(found, _MASK))
