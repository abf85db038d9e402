"""Directory of the servers that live, in the key-value store that Ray has.

A server writes where it is, again and again, each time with another number. Who reads takes it to live for as long as
the number goes on changing: no two machines need to agree on the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import orjson

from service.cluster.ingress.table import NodeAddress

#: seconds between two entries of a server, and between two looks
BEAT: Final = 0.5
#: seconds without another number after which a server is taken to be gone, and its entry is removed
GONE: Final = 10.0
FORGOTTEN_AFTER: Final = 60.0
_PREFIX: Final = b"gradserve:node:"
_NAMESPACE: Final = b"gradserve"


class RayStore:
    """Key-value store of Ray, which its head keeps."""

    def __init__(self) -> None:
        from ray.experimental import internal_kv  # noqa: PLC0415 # the directory itself needs no Ray

        self._kv = internal_kv

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value, in place of what is there."""
        self._kv._internal_kv_put(key, value, overwrite=True, namespace=_NAMESPACE)  # noqa: SLF001 - it has no other name

    def get(self, key: bytes) -> bytes | None:
        """Read a value; None where there is none."""
        value: bytes | None = self._kv._internal_kv_get(key, namespace=_NAMESPACE)  # noqa: SLF001 - as put
        return value

    def delete(self, key: bytes) -> None:
        """Remove a value, if there is one."""
        self._kv._internal_kv_del(key, namespace=_NAMESPACE)  # noqa: SLF001 - as put

    def keys(self, prefix: bytes) -> list[bytes]:
        """List all keys that begin so."""
        return list(self._kv._internal_kv_list(prefix, namespace=_NAMESPACE))  # noqa: SLF001 - as put


class DirectoryEntry:
    """One server's own entry."""

    def __init__(self, store: RayStore, name: str, address: NodeAddress) -> None:
        self._store = store
        self._key = _PREFIX + name.encode()
        self._address = address
        self._beats = 0

    def renew(self) -> None:
        """Say that it lives."""
        self._beats += 1
        self._store.put(self._key, orjson.dumps([*self._address, self._beats]))

    def remove(self) -> None:
        """Say that it is going."""
        self._store.delete(self._key)


class Directory:
    """Reader of all entries."""

    def __init__(self, store: RayStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        #: by key: what was read last, and when it was another thing for the last time
        self._seen: dict[bytes, tuple[bytes, float]] = {}

    def living(self) -> set[NodeAddress]:
        """Read the addresses of the servers that live."""
        now, seen = self._clock(), {}
        for key in self._store.keys(_PREFIX):
            value = self._store.get(key)
            if value is None:
                continue
            known = self._seen.get(key)
            since = known[1] if known and known[0] == value else now
            if now - since > FORGOTTEN_AFTER:
                self._store.delete(key)
            else:
                seen[key] = value, since
        self._seen = seen
        return {_address(value) for value, since in seen.values() if now - since <= GONE}


def _address(value: bytes) -> NodeAddress:
    host, port, _ = orjson.loads(value)
    return host, port
