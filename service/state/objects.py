"""Object store, where bytes are kept by key: its interface, and the part of one that is a shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

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
