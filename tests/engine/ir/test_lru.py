"""The least-recently-used cache."""

from __future__ import annotations

import sys
import threading

from engine.ir.lru import LRU


def test_least_recently_used_is_evicted_first() -> None:
    evicted: list[bytes] = []
    cache: LRU[str, bytes] = LRU(10, len, evicted=evicted.append)
    for key in "abc":
        cache.put(key, key.encode() * 3)
    assert cache.hit("a") == b"aaa"
    cache.put("d", b"dddd")
    assert evicted == [b"bbb"]
    assert [cache.hit(key) for key in "abcd"] == [b"aaa", None, b"ccc", b"dddd"]
    assert cache.hit(None) is None


def test_capacity_counts_values_without_a_size_function() -> None:
    cache: LRU[int, int] = LRU(2)
    for key in range(3):
        cache.put(key, key)
    assert len(cache) == 2
    assert [cache.hit(key) for key in range(3)] == [None, 1, 2]


def test_replaced_value_is_counted_once_and_not_evicted() -> None:
    evicted: list[bytes] = []
    cache: LRU[str, bytes] = LRU(10, len, evicted=evicted.append)
    for size in (9, 4, 4):
        cache.put("a", bytes(size))
    cache.put("b", bytes(6))
    assert (cache.hit("a"), cache.hit("b")) == (bytes(4), bytes(6))
    assert evicted == []


def test_put_marks_an_existing_key_as_used() -> None:
    cache: LRU[str, int] = LRU(2)
    for key in "abac":
        cache.put(key, 0)
    assert [cache.hit(key) for key in "abc"] == [0, None, 0]


def test_empty_values_are_hits() -> None:
    cache: LRU[str, bytes] = LRU(10, len)
    cache.put("a", b"")
    assert cache.hit("a") == b""


def test_value_over_the_capacity_is_not_cached() -> None:
    evicted: list[bytes] = []
    cache: LRU[str, bytes] = LRU(10, len, evicted=evicted.append)
    cache.put("a", bytes(2))
    cache.put("b", bytes(20))
    assert (cache.hit("a"), cache.hit("b"), len(cache)) == (None, None, 0)
    assert evicted == [bytes(2), bytes(20)]


def test_keep_newest_allows_a_value_over_the_capacity() -> None:
    cache: LRU[str, bytes] = LRU(10, len, keep_newest=True)
    cache.put("a", bytes(2))
    cache.put("b", bytes(20))
    assert (cache.hit("a"), cache.hit("b")) == (None, bytes(20))
    cache.put("c", bytes(1))
    assert (cache.hit("b"), cache.hit("c")) == (None, bytes(1))


def test_eviction_callback_may_use_the_cache() -> None:
    cache: LRU[str, str] = LRU(1, evicted=lambda value: evicted.append((value, cache.hit("b"))))
    evicted: list[tuple[str, str | None]] = []
    cache.put("a", "first")
    cache.put("b", "second")
    assert evicted == [("first", "second")]


def test_threads_may_share_a_cache() -> None:
    cache: LRU[int, int] = LRU(8, lambda value: value % 3)
    errors: list[BaseException] = []

    def use(seed: int) -> None:
        try:
            for i in range(2000):
                key = (i * seed) % 31
                if cache.hit(key) is None:
                    cache.put(key, key)
        except BaseException as error:  # noqa: BLE001 - for the test's own thread
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=use, args=(seed,)) for seed in (3, 5, 7, 11)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert sum(key % 3 for key in range(31) if cache.hit(key) is not None) <= cache.capacity
