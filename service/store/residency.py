"""Residency of tensors: which ones have their elements in memory, of all shards that a server owns.

A server that takes over the shards of another one may own more tensors than its limit allows. Its tables have all of
them, but only `limit` bytes of elements are in memory. The other versions are *unloaded*: their elements are in the
journal alone, and are read when a call uses the tensor. With a limit of 20 MB, and 15 MB in each of two shards:

    opening of shard 1        15 MB in memory
    opening of shard 2        5 MB in memory, 10 MB unloaded
    a call reads one of them  it comes from the journal, and those that were used longest ago are unloaded

Only versions that are in the journal can become unloaded: a write that is not durable yet stays in memory. The elements
that a call reads stay until it ends, even if their version becomes unloaded meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container
from concurrent.futures import Executor
from threading import Lock
from typing import Final, Protocol

from service.core.allocation import Allocation

#: namespace and name
_Key = tuple[str, str]


class _Unloaded:
    """Memory of a version without elements in memory."""

    view: memoryview = memoryview(b"")
    buffer = None

    def release(self) -> None:
        """Do nothing."""


UNLOADED: Final[Allocation] = _Unloaded()


class Holder(Protocol):
    """Table of tensors that takes part."""

    def unload(self, key: _Key) -> bool:
        """Give the memory of a tensor's elements back; return False if they are nowhere else."""


class Residency:
    """Record of the elements in memory, for one event loop; `reserve` and `give_back` are for any thread."""

    def __init__(self, limit: float, executor: Executor) -> None:
        """Allow `limit` bytes of elements; `executor` reads the others."""
        self.limit, self.executor = limit, executor
        self._lock = Lock()
        self._reserved = 0
        self.nbytes = 0
        #: bytes of the elements in memory, those that were used longest ago first
        self._sizes: OrderedDict[tuple[Holder, _Key], int] = OrderedDict()

    def reserve(self, nbytes: int) -> int:
        """Reserve up to `nbytes` bytes for elements that are about to be loaded; return how many there is room for."""
        with self._lock:
            granted = int(max(0, min(nbytes, self.limit - self.nbytes - self._reserved)))
            self._reserved += granted
        return granted

    def give_back(self, reserved: int) -> None:
        """Give back what `reserve` has granted: the elements are loaded, or will not be."""
        with self._lock:
            self._reserved -= reserved

    def add(self, holder: Holder, key: _Key, nbytes: int) -> None:
        """Record elements in memory, as used last."""
        self.remove(holder, key)
        self._sizes[holder, key] = nbytes
        self.nbytes += nbytes

    def remove(self, holder: Holder, key: _Key) -> None:
        """Forget elements, if they were in memory."""
        self.nbytes -= self._sizes.pop((holder, key), 0)

    def use(self, holder: Holder, key: _Key) -> None:
        """Record a use."""
        if (holder, key) in self._sizes:
            self._sizes.move_to_end((holder, key))

    def make_room(self, needed: Container[tuple[Holder, _Key]] = ()) -> None:
        """Make versions unloaded until the rest fits, except those that are needed now."""
        if self.nbytes <= self.limit:
            return
        for holder, key in [*self._sizes]:
            if (holder, key) not in needed and holder.unload(key) and self.nbytes <= self.limit:
                return
