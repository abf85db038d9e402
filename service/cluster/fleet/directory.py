"""Directory of live servers, in Ray's key-value store.

A server writes its address at short intervals, each time with another number. A reader assumes that it is alive as long
as the number changes. So no two machines need synchronised clocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import orjson

from service.cluster.ingress.table import NodeAddress

#: seconds between two writes of a server, and between two reads
BEAT: Final = 0.5
#: seconds without a new number after which a server counts as dead, and after which its entry is removed
GONE: Final = 10.0
FORGOTTEN_AFTER: Final = 60.0
_PREFIX: Final = b"gradserve:node:"
_NAMESPACE: Final = b"gradserve"


class RayStore:
    """Key-value store of Ray, which the head node keeps."""

    def __init__(self) -> None:
        from ray.experimental import internal_kv  # noqa: PLC0415 # the directory itself needs no Ray

        self._kv = internal_kv

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value, and replace the old one."""
        self._kv._internal_kv_put(key, value, overwrite=True, namespace=_NAMESPACE)  # noqa: SLF001 - it has no other name

    def get(self, key: bytes) -> bytes | None:
        """Read a value, None if there is none."""
        value: bytes | None = self._kv._internal_kv_get(key, namespace=_NAMESPACE)  # noqa: SLF001 - as put
        return value

    def delete(self, key: bytes) -> None:
        """Remove a value, if there is one."""
        self._kv._internal_kv_del(key, namespace=_NAMESPACE)  # noqa: SLF001 - as put

    def keys(self, prefix: bytes) -> list[bytes]:
        """List all keys with this prefix."""
        return list(self._kv._internal_kv_list(prefix, namespace=_NAMESPACE))  # noqa: SLF001 - as put


class DirectoryEntry:
    """A server's own entry."""

    def __init__(self, store: RayStore, name: str, address: NodeAddress) -> None:
        self._store = store
        self._key = _PREFIX + name.encode()
        self._address = address
        self._beats = 0

    def renew(self) -> None:
        """Write the entry with the next number."""
        self._beats += 1
        self._store.put(self._key, orjson.dumps([*self._address, self._beats]))

    def remove(self) -> None:
        """Remove the entry: the server is stopping."""
        self._store.delete(self._key)


class Directory:
    """Reader of all entries."""

    def __init__(self, store: RayStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        #: by key, the value that was read last, and when it last changed
        self._seen: dict[bytes, tuple[bytes, float]] = {}

    def living(self) -> set[NodeAddress]:
        """Return the addresses of the live servers."""
        now, entries = self._clock(), {}
        for key in self._store.keys(_PREFIX):
            value = self._store.get(key)
            if value is None:
                continue
            previous = self._seen.get(key)
            since = previous[1] if previous and previous[0] == value else now
            if now - since > FORGOTTEN_AFTER:
                self._store.delete(key)  # a server that was killed cannot remove its own entry
            else:
                entries[key] = value, since
        self._seen = entries
        return {_address(value) for value, since in entries.values() if now - since <= GONE}


def _address(value: bytes) -> NodeAddress:
    host, port, _ = orjson.loads(value)
    return host, port
