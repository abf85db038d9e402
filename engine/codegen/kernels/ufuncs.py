"""The primitives of fused kernels as functions of NumPy and CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.program import PAIRS
from engine.ir.op import Array, Namespace

# Threefry-2x32 on arrays: two words of 32 bits, mixed under a key of two others, and uniform numbers made of them.
# J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), in 20 rounds. It is
# made of integers alone, so every device has the same bits.

#: by how many bits the second word is turned, in rounds of four
ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
ROUNDS_OF_FOUR: Final = 5
#: the third word of the key is the parity of the others and of this
PARITY: Final = 0x1BD11BDA

WordPair = tuple[Array, Array]


def mixed(key: WordPair, counter: WordPair) -> WordPair:
    """Mix the words of a counter under a key: arrays of uint32, which broadcast. The result is new memory."""
    first, second = key
    keys = first, second, first ^ second ^ first.dtype.type(PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    turned = y.copy()
    for number in range(ROUNDS_OF_FOUR):
        for bits in ROTATIONS[number % 2]:
            x += y
            turned[...] = y
            turned <<= turned.dtype.type(bits)
            y >>= y.dtype.type(32 - bits)
            y |= turned
            y ^= x
        x += keys[(number + 1) % 3]
        y += keys[(number + 2) % 3]
        y += y.dtype.type(number + 1)
    return x, y


def wide_bits(words: WordPair) -> Array:
    """Join two words to a uint64: the first word, and behind it the second."""
    bits = words[0].astype("uint64")
    bits <<= bits.dtype.type(32)
    bits |= words[1]
    return bits


def write_uniform(words: WordPair, out: Array) -> None:
    """Write uniform numbers in [0, 1), float32 or float64: the upper bits are a mantissa, of a number in [1, 2)."""
    bits = words[0] ^ words[1] if out.dtype.itemsize == 4 else wide_bits(words)
    word, one = bits.dtype.type, out.dtype.type(1)
    bits >>= word(8 * out.dtype.itemsize - np.finfo(out.dtype).nmant)
    bits |= one.view(word)
    out[...] = bits.view(out.dtype)
    out -= one


def threefry_uniform(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw uniform numbers with the words of a key, and two numbers whose sum is the counter, below 2³².

    All operands are the bits of floats.
    """
    counter, out = _carried(xp, row) + _carried(xp, column), _place(xp, (first, second, row, column), out)
    write_uniform(_drawn(xp, first, second, counter), _with_axis(out))
    return out


def threefry_bits(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw as `threefry_uniform` the exclusive or of both words, as the bits of float32."""
    counter, out = _carried(xp, row) + _carried(xp, column), _place(xp, (first, second, row, column), out)
    x, y = _drawn(xp, first, second, counter)
    _with_axis(out).view(x.dtype)[...] = x ^ y
    return out


def threefry_word(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw as `threefry_bits`, of counter row + column / 2, the first word, or where column is odd, the second one."""
    number, out = _carried(xp, column), _place(xp, (first, second, row, column), out)
    x, y = _drawn(xp, first, second, _carried(xp, row) + (number >> number.dtype.type(1)))
    _with_axis(out).view(x.dtype)[...] = xp.where(number & number.dtype.type(1), y, x)
    return out


def _drawn(xp: Namespace, first: Array, second: Array, counter: Array) -> WordPair:
    return mixed((_carried(xp, first), _carried(xp, second)), (xp.zeros_like(counter), counter))


def _carried(xp: Namespace, floats: Array) -> Array:
    """Return the words that floats carry as their bits, along one axis at least."""
    return xp.atleast_1d(floats.view(f"u{floats.dtype.itemsize}").astype("uint32"))


def _place(xp: Namespace, operands: Sequence[Array], out: Array | None) -> Array:
    """Return `out`, or a new array of the shape and dtype that the operands have together."""
    return xp.empty(xp.broadcast(*operands).shape, operands[0].dtype) if out is None else out


def _with_axis(out: Array) -> Array:
    return out if out.ndim else out.reshape(1)


#: primitive → the ufunc of numpy and cupy that it is
UFUNCS: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("sqrt", "floor", "ceil", "rint", "add", "minimum", "maximum", "copysign")}
    | {name: name for name in ("exp", "expm1", "log", "log1p", "log2", "tanh", "sin", "cos")}
    | {"neg": "negative", "abs": "absolute", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "remainder"}
    | {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
    | {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
)
#: the same of what complex numbers alone have
_COMPLEX_UFUNCS: Final = {"conj": "conjugate"} | {name: name for name in ("reciprocal", "sinh", "cosh")}
#: ufunc → the primitive of complex numbers that it is
COMPLEX_PRIMITIVE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: op for op, name in {**UFUNCS, **_COMPLEX_UFUNCS}.items() if op in PAIRS}
)
#: reduction of a row → the ufunc that reduces
FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {"row_sum": "add", "row_prod": "multiply", "row_max": "maximum", "row_min": "minimum"}
)
#: those whose `out` NumPy wants by name
BY_NAME: Final = frozenset({"minimum", "maximum"})


def _pair(xp: Namespace, re: Array, im: Array, out: Array | None = None) -> Array:
    if out is None:
        out = xp.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64))
    out.real[...] = re
    out.imag[...] = im
    return out


def _part(name: str, xp: Namespace, x: Array, out: Array | None = None) -> Array:
    part = getattr(x, name)
    if out is None:
        return part.copy()
    xp.copyto(out, part)
    return out


def _angle(xp: Namespace, x: Array, out: Array | None = None) -> Array:
    return xp.arctan2(x.imag, x.real, out=out)


#: primitives that neither module has: functions of it, and of what a ufunc takes
_OURS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"threefry_uniform": threefry_uniform, "threefry_bits": threefry_bits, "threefry_word": threefry_word}
    | {"pair": _pair, "real": partial(_part, "real"), "imag": partial(_part, "imag"), "angle": _angle}
)


def ufunc_of(xp: Any, op: str) -> Any:
    """Return a ufunc of `xp` (numpy or cupy), or a function like one, for a primitive. Raises TypeError."""
    if op in _OURS:
        return partial(_OURS[op], xp)
    name = UFUNCS.get(op) or _COMPLEX_UFUNCS.get(op)
    if name is None:
        raise TypeError(f"{op} is for compiled kernels")
    return getattr(xp, name)
