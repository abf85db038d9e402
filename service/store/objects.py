"""Object store, where bytes are kept by key: its interface, and the part of one that is a shard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

#: bytes on their way to an object: it is made of several such parts, one after the other
Data = bytes | memoryview


class Missing(LookupError):
    """Absence of an object of this key."""


class Exists(Exception):
    """Presence of an object of this key already."""


class Denied(OSError):
    """The store has answered that it does not do this: nothing was made."""


class Objects(Protocol):
    """Objects by key. All of it blocks, and may be called by several threads at a time.

    Keys are made by us: lower-case ASCII words, digits and dots, with / between them. Whatever a method cannot do, it
    tells by OSError, `errno` ENOSPC or EDQUOT where there is no space.
    """

    #: whether nobody else can write here while this is open
    exclusive: bool

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes of an object from `start` to `stop`, as many as there are. Raises Missing."""

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Keep these parts as one object, in place of what is there: wholly, and durably, when it returns."""

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Keep these parts under a key that is free. Raises Exists; of several that race, one is kept.

        Upon Denied it is not there; upon another OSError it may be there or not, or come to be there later.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Remove these objects, durably when it returns; those that are not there are no error."""

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """The keys that begin with a prefix, which is empty or ends in /, and come `after` another; in no order."""

    def close(self) -> None:
        """Let go of the place."""


# Shards of a place that several servers share: each is a journal, and a namespace belongs to one of them for ever.

#: how many there are, in each place of this format
SHARDS: Final = 16
_FOLDER: Final = "shards/"
_KEY: Final = re.compile(rf"{_FOLDER}([0-9]{{2}})/(.+)")


def shard_of(namespace: str) -> int:
    """The shard that a namespace belongs to: the first byte of BLAKE2b's digest of its name, modulo their number."""
    return blake2b(namespace.encode(), digest_size=8).digest()[0] % SHARDS


def folder_of(shard: int) -> str:
    """Return what the keys of a shard begin with."""
    return f"{_FOLDER}{shard:02}/"


def split_key(key: str) -> tuple[int, str]:
    """The shard that a key is of, and the key within it. Raises ValueError."""
    found = _KEY.fullmatch(key)
    if found is None or int(found[1]) >= SHARDS:
        raise ValueError(f"it has {key!r}")
    return int(found[1]), found[2]


class ShardObjects:
    """The objects of one shard, as if they were all."""

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
        found = self._objects.list(self._folder + prefix, self._folder + after if after else "")
        return [key.removeprefix(self._folder) for key in found]

    def close(self) -> None:
        """Implement `Objects.close`: the other shards are open still."""
