"""An LRU cache with shares for owners, whose values are each made by one thread while the others wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import TIMEOUT_MAX, Event, Lock
from typing import Generic, TypeVar

from engine.ir.fairness import FairEviction, current_owner
from engine.ir.limits import NO_DEADLINE, Deadline

_Value = TypeVar("_Value")


class Entry(Generic[_Value]):
    """A value that is being made, or is there. Once it is `done`, a `value` of None says that making it failed."""

    __slots__ = ("done", "nbytes", "value")

    def __init__(self) -> None:
        self.done = Event()
        self.value: _Value | None = None
        self.nbytes = 0

    def wait(self, deadline: Deadline) -> _Value | None:
        """Wait for the value. Raises DeadlineExceeded."""
        while not self.done.is_set():
            self.done.wait(min(max(deadline.at - time.monotonic(), 0), TIMEOUT_MAX))
            deadline.check()
        return self.value


class Cache(Generic[_Value]):
    """Values by key: at most `capacity`, of at most `bytes` in all, as `size` counts them.

    Beyond, the owner that holds most loses the value that it used longest ago. So a single owner keeps what it used
    most recently, and none of several displaces what the others keep within their shares. A value larger than `bytes`
    is returned and not kept, so that it displaces nothing. May be shared by threads.
    """

    def __init__(self, capacity: int, bytes: int, size: Callable[[_Value], int]) -> None:
        self.capacity = capacity
        self.bytes = bytes
        self._size = size
        self._kept: dict[Hashable, Entry[_Value]] = {}
        self._claims = FairEviction()
        self._making: dict[Hashable, Entry[_Value]] = {}
        self._held = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _Value], deadline: Deadline = NO_DEADLINE) -> tuple[_Value, bool]:
        """Return the value of `key`, and whether somebody else has made it.

        Of several threads that ask for it, one makes it, and the others wait, each within its own `deadline`. If making
        it fails, the next one tries: the deadline may have been the other's, and the message may quote the other's
        request. Raises DeadlineExceeded, and what `make` raises.
        """
        while True:
            entry, is_new = self._entry(key)
            if is_new:
                return self._fill(key, entry, make), False
            value = entry.wait(deadline)
            if value is not None:
                return value, True

    def find(self, key: Hashable) -> _Value | None:
        """Return the value of `key`, if it is cached; it counts as used."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._claims.use(key, current_owner(), entry.nbytes)
            return entry.value

    def _entry(self, key: Hashable) -> tuple[Entry[_Value], bool]:
        """Return the entry of `key`, and whether it is new: then the caller fills it."""
        with self._lock:
            if entry := self._kept.get(key):
                self._claims.use(key, current_owner(), entry.nbytes)
                return entry, False
            if key in self._making:
                return self._making[key], False
            entry = self._making[key] = Entry()
            return entry, True

    def _fill(self, key: Hashable, entry: Entry[_Value], make: Callable[[], _Value]) -> _Value:
        try:
            value = make()
            entry.nbytes = self._size(value)
            entry.value = value
            return value
        finally:
            with self._lock:
                del self._making[key]
                self._keep(key, entry)
            entry.done.set()

    def _keep(self, key: Hashable, entry: Entry[_Value]) -> None:
        if entry.value is None or entry.nbytes > self.bytes:
            return
        self._kept[key] = entry
        self._held += entry.nbytes
        self._claims.use(key, current_owner(), entry.nbytes)
        while len(self._kept) > self.capacity or self._held > self.bytes:
            gone = self._claims.let_go(by_size=self._held > self.bytes)
            if gone is not None:
                self._held -= self._kept.pop(gone).nbytes
