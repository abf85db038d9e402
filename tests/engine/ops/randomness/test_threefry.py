"""Threefry matches the published vectors, and draws do not depend on the block size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.codegen.kernels.block_program import WordPair, threefry_2x32, write_uniform
from engine.ir.errors import DeadlineExceeded
from engine.ir.run_context import Deadline, RunContext
from engine.ops.randomness import threefry

RUN = RunContext(np)
WORD = np.uint32
#: Random123, tests/kat_vectors: threefry2x32 of 20 rounds; key, counter, result
PUBLISHED = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def words(pair: tuple[int, int]) -> WordPair:
    return np.array([pair[0]], WORD), np.array([pair[1]], WORD)


def draw_pairs(keys: Any, count: int) -> Any:
    out = np.zeros((len(keys), count, 2), WORD)
    threefry.draw(RUN, np.asarray(keys, WORD), out, threefry.write_pairs)
    return out


@pytest.mark.parametrize(("key", "counter", "result"), PUBLISHED)
def test_threefry_matches_published_vectors(
    key: tuple[int, int], counter: tuple[int, int], result: tuple[int, int]
) -> None:
    first, second = threefry_2x32(words(key), words(counter))
    assert (first.tolist(), second.tolist()) == ([result[0]], [result[1]])


def test_threefry_of_a_counter_beyond_32_bits() -> None:
    """The element at index 2³³ + 5 has the counter (2, 5)."""
    key = words((7, 9))
    alone = threefry_2x32(key, words((2, 5)))
    index = np.array([2**33 + 5])
    both = threefry_2x32(key, ((index >> 32).astype(WORD), index.astype(WORD)))
    assert [a.tolist() for a in alone] == [b.tolist() for b in both]
    assert alone[0] != threefry_2x32(key, words((0, 5)))[0]


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("shape", [(1, 100), (5, 20), (40, 1), (3, 0), (0, 4)])
def test_draws_do_not_depend_on_block_size(size: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.arange(2 * shape[0], dtype=WORD).reshape(-1, 2) * WORD(0x9E3779B9)
    whole = draw_pairs(keys, shape[1])
    monkeypatch.setattr(threefry, "_pairs_at_once", lambda _: size)
    assert np.array_equal(draw_pairs(keys, shape[1]), whole)
    for key, row in zip(keys, whole, strict=True):
        for i, pair in enumerate(row):
            assert [int(w[0]) for w in threefry_2x32((key[:1], key[1:]), words((0, i)))] == pair.tolist()


def test_rows_beyond_32_bits_use_both_counter_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last five of 2³³ + 5 elements, in a row that repeats one element."""
    monkeypatch.setattr(threefry, "_blocks", lambda *_: [(0, 2**33)])
    row = np.lib.stride_tricks.as_strided(np.zeros(1, WORD), (1, 2**33 + 5), (4, 0))
    draws: list[WordPair] = []
    threefry.draw(RUN, np.array([[7, 9]], WORD), row, lambda drawn, _: draws.append(drawn))
    ((first, second),) = draws
    for i in range(5):
        assert [first[0, i], second[0, i]] == [word[0] for word in threefry_2x32(words((7, 9)), words((2, i)))]


def test_uniform_uses_the_upper_bits() -> None:
    """All ones give the largest number below 1, of 23 or 52 bits; lower bits are dropped."""
    for dtype, mantissa in (("float32", 23), ("float64", 52)):
        out = np.empty(1, dtype)
        write_uniform((np.array([2**32 - 1], WORD), np.array([0], WORD)), out)
        actual = float(out[0])
        ones = 2**mantissa - 1 if dtype == "float32" else (2**32 - 1) << 20
        assert actual == ones / 2**mantissa
        write_uniform((np.array([0], WORD), np.array([1], WORD)), out)
        assert out.tolist() == [0.0]


def test_draw_stops_at_the_deadline() -> None:
    late = RunContext(np, Deadline(stop=b"\1"))
    with pytest.raises(DeadlineExceeded):
        threefry.draw(late, np.zeros((1, 2), WORD), np.empty((1, 4), WORD), threefry.write_bits)
