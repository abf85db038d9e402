"""Object store: the interface to bytes stored by key, and the part of a store that is one shard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

#: part of an object, whose bytes are its parts in a row
Data = bytes | memoryview

#: prefix of the keys of all shards of a shared place: each is a journal, and a namespace stays in one of them
SHARD_FOLDERS: Final = "shards/"
#: numbers below 100 have two digits, larger ones as many as they need: so each shard has one name
_KEY: Final = re.compile(rf"{SHARD_FOLDERS}([0-9]{{2}}|[1-9][0-9]{{2,3}})/(.+)")
#: most shards that the first byte of a digest selects
_ONE_BYTE: Final = 256


class Missing(LookupError):
    """Absence of an object with this key."""


class Exists(Exception):
    """Presence of an object with this key."""


class Denied(OSError):
    """Rejection of a request by the store: nothing was created."""


class Objects(Protocol):
    """Objects by key. All methods block, and may be called by several threads at a time.

    Keys are lower-case ASCII words, digits and dots, separated by slashes. Failures are OSErrors, with the `errno`
    ENOSPC or EDQUOT if there is no space.
    """

    #: whether nobody else can write here while this is open
    exclusive: bool

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of an object from `start` to `stop`, or fewer if it ends before. Raises Missing."""

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Write these parts as one object, replacing an earlier one: atomically, and durably when this returns."""

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Write these parts under a key that is free. Raises Exists; of several racing writers, one succeeds.

        After Denied, the object does not exist; after another OSError, it may exist or not, or appear later.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Delete these objects, durably when this returns; missing ones are no error."""

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """List the keys that begin with a prefix (empty, or ending in /) and sort after `after`; in any order."""

    def close(self) -> None:
        """Release the place."""


def shard_of(namespace: str, shards: int) -> int:
    """Return the shard of a namespace: its name's 8-byte BLAKE2b digest, modulo the number of shards.

    Up to 256 shards, only the first byte of the digest counts; above, all eight do, as a big-endian integer.
    """
    digest = blake2b(namespace.encode(), digest_size=8).digest()
    return (digest[0] if shards <= _ONE_BYTE else int.from_bytes(digest, "big")) % shards


def folder_of(shard: int) -> str:
    """Return the prefix of the keys of a shard."""
    return f"{SHARD_FOLDERS}{shard:02}/"


def split_key(key: str, shards: int) -> tuple[int, str]:
    """Split a key into its shard, one of `shards`, and the key within it. Raises ValueError."""
    match = _KEY.fullmatch(key)
    if match is None or int(match[1]) >= shards:
        raise ValueError(f"unexpected member {key!r}")
    return int(match[1]), match[2]


class ShardObjects:
    """Objects of one shard, as an object store of their own."""

    def __init__(self, objects: Objects, shard: int) -> None:
        self._objects, self._folder = objects, folder_of(shard)
        self.exclusive = objects.exclusive

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Implement `Objects.get`."""
        return self._objects.get(self._folder + key, start, stop)

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put`."""
        self._objects.put(self._folder + key, data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put_new`."""
        self._objects.put_new(self._folder + key, data)

    def delete(self, keys: Sequence[str]) -> None:
        """Implement `Objects.delete`."""
        self._objects.delete([self._folder + key for key in keys])

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """Implement `Objects.list`."""
        keys = self._objects.list(self._folder + prefix, self._folder + after if after else "")
        return [key.removeprefix(self._folder) for key in keys]

    def close(self) -> None:
        """Implement `Objects.close`: the other shards stay open."""
