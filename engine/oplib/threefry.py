"""Threefry-2x32: two words of 32 bits, mixed under a key of two others. Random numbers are what it makes of counters.

J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), in 20 rounds. Integers
alone: every device and every block size has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array
from engine.graph.run_context import RunContext

#: by how many bits the second word is turned, in rounds of four
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROUNDS_OF_FOUR: Final = 5
#: the third word of the key is the parity of the others and of this
_PARITY: Final = 0x1BD11BDA
#: integer operations for each pair of words: an addition, a rotation of three, an exclusive or; every fourth time, keys
PAIR_OPERATIONS: Final = _ROUNDS_OF_FOUR * (4 * 5 + 3)
WORD: Final = 2**32
#: pairs that are made at a time: they stay in the cache
_PAIRS: Final = 1 << 13
#: on a card: launches are few
_PAIRS_ON_CARD: Final = 1 << 20

Words = tuple[Array, Array]


def mixed(key: Words, counter: Words) -> Words:
    """The words that a counter's become under a key: arrays of uint32, which broadcast. New memory."""
    first, second = key
    keys = first, second, first ^ second ^ first.dtype.type(_PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    turned = y.copy()
    for number in range(_ROUNDS_OF_FOUR):
        for bits in _ROTATIONS[number % 2]:
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


def draw(run: RunContext, keys: Array, out: Array, write: Callable[[Words, Array], None]) -> None:
    """For each key, let `write` make its row of `out` from the pairs of the counters 0, 1, 2, ….

    keys are uint32 [n, 2], out [n, m, …]; element i of a row is that of the counter i, as words (i ≫ 32, i mod 2³²).
    `write` is given the words of a block, [rows, columns], and the block. Looks at the deadline before each.
    """
    n, m = out.shape[:2]
    size = _pairs_at_once(run)
    rows, columns = max(1, size // max(m, 1)), min(m, size)
    for row, column in run.through(_blocks(n, m, rows, columns)):
        block = out[row : row + rows, column : column + columns]
        place = run.xp.arange(column, column + block.shape[1], dtype="int64")
        counter = (place >> 32).astype("uint32"), place.astype("uint32")
        write(mixed(_words(keys[row : row + rows, None]), counter), block)


def _blocks(n: int, m: int, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    if n and m:
        yield from ((row, column) for row in range(0, n, rows) for column in range(0, m, columns))


def _words(pairs: Array) -> Words:
    return pairs[..., 0], pairs[..., 1]


@DeviceFunction
def _pairs_at_once(_: RunContext) -> int:
    return _PAIRS_ON_CARD


@_pairs_at_once.on("cpu")
def _pairs_in_cache(_: RunContext) -> int:
    return _PAIRS


# ---------------------------------------------------------------- what is made of the words of a pair


def write_pairs(words: Words, out: Array) -> None:
    """Both: uint32 [..., 2]."""
    out[..., 0], out[..., 1] = words


def write_bits(words: Words, out: Array) -> None:
    """32 bits: uint32."""
    out[...] = words[0] ^ words[1]


def wide_bits(words: Words) -> Array:
    """64 bits: the first word, and behind it the second. uint64."""
    found = words[0].astype("uint64")
    found <<= found.dtype.type(32)
    found |= words[1]
    return found


def write_uniform(words: Words, out: Array) -> None:
    """Uniform numbers in [0, 1), float32 or float64: the upper bits are a mantissa, of a number in [1, 2)."""
    bits = words[0] ^ words[1] if out.dtype.itemsize == 4 else wide_bits(words)
    kind, width, exponent = bits.dtype.type, 8 * out.dtype.itemsize, _one(out.dtype)
    mantissa = _MANTISSA[out.dtype.name]
    bits >>= kind(width - mantissa)
    bits |= kind(exponent)
    out[...] = bits.view(out.dtype)
    out -= out.dtype.type(1)


_MANTISSA: Final = {"float32": 23, "float64": 52}
#: the bits of the number one
_ONE: Final = {"float32": 0x3F800000, "float64": 0x3FF0000000000000}


def _one(dtype: Any) -> int:
    return _ONE[dtype.name]
