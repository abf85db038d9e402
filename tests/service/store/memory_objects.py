"""Objects in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from service.store.objects import Data, Exists, Missing


class MemoryObjects:
    """Object store in memory with the interface of `Objects`."""

    exclusive = False

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._lock = Lock()

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read an object, or a range of it."""
        try:
            return self._kept[key][start:stop]
        except KeyError:
            raise Missing(key) from None

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Write an object."""
        self._kept[key] = b"".join(data)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Create an object."""
        with self._lock:
            if key in self._kept:
                raise Exists(key)
            self._kept[key] = b"".join(data)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects."""
        for key in keys:
            self._kept.pop(key, None)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """List the keys with a prefix that follow a key."""
        return [key for key in list(self._kept) if key.startswith(prefix) and key > after]

    def close(self) -> None:
        """Do nothing."""
