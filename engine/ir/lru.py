"""Least-recently-used cache, for all caches whose values are stored explicitly and bounded by size.

`functools.lru_cache` suits functions of few arguments; here values are stored and looked up explicitly, each with a
size:

    cache = LRU(1 << 20, size=len)   # at most 1 MiB
    code = cache.hit(key)            # None: a miss
    if code is None:
        cache.put(key, compile())

Caches that share their capacity fairly between callers use `FairEviction`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LRU(Generic[_Key, _Value]):
    """Values by key; the least recently used are evicted. Thread-safe."""

    def __init__(
        self,
        capacity: int,
        size: Callable[[_Value], int] = lambda _: 1,
        *,
        keep_newest: bool = False,
        evicted: Callable[[_Value], None] = lambda _: None,
    ) -> None:
        """Create an empty cache. `capacity` bounds the sum of the sizes, by default the number of values.

        With `keep_newest`, the value stored last stays even if it alone exceeds the capacity. `evicted` is called with
        every evicted value, outside the lock, but not with a value that is replaced.
        """
        self.capacity = capacity
        self._size, self._evicted = size, evicted
        self._min_entries = int(keep_newest)
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._total_size = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    def hit(self, key: _Key | None) -> _Value | None:
        """Return the value of a key and mark it most recently used; None on a miss."""
        with self._lock:
            if key is None or key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: _Key, value: _Value) -> None:
        """Store a value, replacing the key's previous value, and evict until the capacity holds."""
        evicted = []
        with self._lock:
            replaced = self._values.pop(key, None)
            if replaced is not None:
                self._total_size -= self._size(replaced)
            self._values[key] = value
            self._total_size += self._size(value)
            while self._total_size > self.capacity and len(self._values) > self._min_entries:
                _, oldest = self._values.popitem(last=False)
                self._total_size -= self._size(oldest)
                evicted.append(oldest)
        for evicted_value in evicted:
            self._evicted(evicted_value)
