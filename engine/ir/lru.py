"""Least-recently-used cache: the one that is used wherever values are found again by key within a bound.

`functools.lru_cache` suits functions of few arguments; here values are put in and found by hand, each with a size:

    cache = LRU(1 << 20, size=len)   # at most 1 MiB
    code = cache.hit(key)            # None: a miss
    if code is None:
        cache.put(key, compile())

Caches that share their bound fairly between callers use `FairEviction`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LRU(Generic[_Key, _Value]):
    """Values by key, the least recently used of which are evicted. Threads may share it."""

    def __init__(
        self,
        capacity: int,
        size: Callable[[_Value], int] = lambda _: 1,
        *,
        keep_newest: bool = False,
        evicted: Callable[[_Value], None] = lambda _: None,
    ) -> None:
        """`capacity` bounds the sum of the sizes, which by default is the number of values.

        With `keep_newest`, the value put last stays even if it alone is larger. `evicted` is called with every value
        that goes, outside the lock, but not with one that another replaces.
        """
        self.capacity = capacity
        self._size, self._evicted = size, evicted
        self._fewest = int(keep_newest)
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._held = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """Count the values."""
        return len(self._values)

    def hit(self, key: _Key | None) -> _Value | None:
        """Return the value of a key, which is now the most recently used; None on a miss."""
        with self._lock:
            if key is None or key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value, in place of the key's value before, and evict until the bound holds."""
        gone = []
        with self._lock:
            before = self._values.pop(key, None)
            if before is not None:
                self._held -= self._size(before)
            self._values[key] = value
            self._held += self._size(value)
            while self._held > self.capacity and len(self._values) > self._fewest:
                _, oldest = self._values.popitem(last=False)
                self._held -= self._size(oldest)
                gone.append(oldest)
        for each in gone:
            self._evicted(each)
