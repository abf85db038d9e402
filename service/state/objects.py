"""Where bytes are kept by key: the four things that storage is asked for, and the one that lives in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Protocol

#: bytes on their way to an object: it is made of several such pieces, one after the other
Data = bytes | memoryview


class Missing(LookupError):
    """There is no object of this key."""


class Exists(Exception):
    """There is an object of this key already."""


class Denied(OSError):
    """The store has answered that it does not do this: nothing was made."""


class Objects(Protocol):
    """Objects by key. All of it blocks, and may be called by several threads at a time.

    Keys are made by us: lower-case ASCII words, digits and dots, with / between them. Whatever a method cannot do, it
    tells by OSError, `errno` ENOSPC or EDQUOT where there is no room.
    """

    #: whether nobody else can write here while this is open
    exclusive: bool

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """The bytes of an object from `start` to `stop`, as many as there are. Raises Missing."""

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Keep these pieces as one object, in place of what is there: wholly, and durably, when it returns."""

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """The same for a key that is free. Raises Exists; of several that race, one is kept.

        Upon Denied it is not there; upon another OSError it may be there or not, or come to be there later.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Remove these objects, durably when it returns; those that are not there are no error."""

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """The keys that begin with a prefix, which is empty or ends in /, and come `after` another; in no order."""

    def close(self) -> None:
        """Let go of the place."""


class MemoryObjects:
    """Objects that end with the process: for tests."""

    exclusive = False

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._lock = Lock()

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """As `Objects` has it."""
        try:
            return self._kept[key][start:stop]
        except KeyError:
            raise Missing(key) from None

    def put(self, key: str, data: Sequence[Data]) -> None:
        """As `Objects` has it."""
        self._kept[key] = b"".join(data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """As `Objects` has it."""
        with self._lock:
            if key in self._kept:
                raise Exists(key)
            self._kept[key] = b"".join(data)

    def delete(self, keys: Sequence[str]) -> None:
        """As `Objects` has it."""
        for key in keys:
            self._kept.pop(key, None)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """As `Objects` has it."""
        return [key for key in list(self._kept) if key.startswith(prefix) and key > after]

    def close(self) -> None:
        """As `Objects` has it: nothing is let go."""
