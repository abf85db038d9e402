"""Random words by Threefry, from a key and counters: of whole arrays, and an element at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.loops.threefry_arrays import ROUNDS_OF_FOUR, WordPair, mixed

#: integer operations for each pair of words: an addition, a rotation of three, an exclusive or; every fourth time, keys
PAIR_OPERATIONS: Final = ROUNDS_OF_FOUR * (4 * 5 + 3)
#: pairs that are made at a time: they stay in the cache
_PAIRS: Final = 1 << 13
#: on a card: launches are few
_PAIRS_ON_CARD: Final = 1 << 20


def draw(run: RunContext, keys: Array, out: Array, write_block: Callable[[WordPair, Array], None]) -> None:
    """For each key, let `write_block` make its row of `out` from the pairs of the counters 0, 1, 2, ….

    keys are uint32 [n, 2], out [n, m, …]; element i of a row is that of the counter i, as words (i ≫ 32, i mod 2³²).
    `write_block` is given the words of a block, [rows, columns], and the block. Looks at the deadline before each.
    """
    n, m = out.shape[:2]
    size = _pairs_at_once(run)
    rows, columns = max(1, size // max(m, 1)), min(m, size)
    for row, column in run.through(_blocks(n, m, rows, columns)):
        block = out[row : row + rows, column : column + columns]
        place = run.xp.arange(column, column + block.shape[1], dtype="int64")
        counter = (place >> 32).astype("uint32"), place.astype("uint32")
        key = keys[row : row + rows, None]
        write_block(mixed((key[..., 0], key[..., 1]), counter), block)


def _blocks(n: int, m: int, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    if n and m:
        yield from ((row, column) for row in range(0, n, rows) for column in range(0, m, columns))


@DeviceFunction
def _pairs_at_once(_: RunContext) -> int:
    return _PAIRS_ON_CARD


@_pairs_at_once.on("cpu")
def _pairs_in_cache(_: RunContext) -> int:
    return _PAIRS


def write_pairs(words: WordPair, out: Array) -> None:
    """Both words: uint32 [..., 2]."""
    out[..., 0], out[..., 1] = words


def write_bits(words: WordPair, out: Array) -> None:
    """32 bits: uint32."""
    out[...] = words[0] ^ words[1]
