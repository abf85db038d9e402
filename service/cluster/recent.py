"""What was used last, within so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def _unnoticed(_: object) -> None:
    pass


class RecentlyUsed(Generic[_K, _V]):
    """Values by name. One alone may have more bytes than all may have."""

    def __init__(
        self, most_bytes: int, nbytes: Callable[[_V], int], dropped: Callable[[_V], None] = _unnoticed
    ) -> None:
        """`dropped` is told of values that are not kept any more."""
        self._most, self._nbytes, self._dropped = most_bytes, nbytes, dropped
        self._kept: OrderedDict[_K, _V] = OrderedDict()
        self._held = 0

    def find(self, name: _K | None) -> _V | None:
        """The value of a name, where it is here."""
        if name is None or name not in self._kept:
            return None
        self._kept.move_to_end(name)
        return self._kept[name]

    def put(self, name: _K, value: _V) -> None:
        """Keep a value, in place of the one of that name; those that were not used for longest go."""
        if (before := self._kept.pop(name, None)) is not None:
            self._held -= self._nbytes(before)
        self._kept[name] = value
        self._held += self._nbytes(value)
        while self._held > self._most and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._held -= self._nbytes(oldest)
            self._dropped(oldest)
