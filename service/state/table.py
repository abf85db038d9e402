"""What is kept, by namespace and name: so many things of so many bytes at most, and some of them only on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from service.errors import Refusal

_V = TypeVar("_V")
TableKey = tuple[str, str]  # namespace and name


class Quota(NamedTuple):
    """How many things there may be, and how many bytes they may take together."""

    most: int
    most_bytes: int


class Table(Generic[_V]):
    """Things by key. For one thread.

    What is *coming* has been decided upon and is being written. It counts, and whoever decides next sees it (`latest`);
    others see it once it has settled (`get`).
    """

    #: what the things are called
    plural = "things"

    def __init__(self, quota: Quota, nbytes: Callable[[_V], int]) -> None:
        self._quota = quota
        self._nbytes = nbytes
        self._kept: dict[str, dict[str, _V]] = {}
        self._coming: dict[TableKey, _V | None] = {}
        self.count = 0
        self.held = 0

    def find(self, key: TableKey) -> _V | None:
        """What is there for everybody."""
        return self._kept.get(key[0], {}).get(key[1])

    def latest(self, key: TableKey) -> _V | None:
        """What will be there when all that is coming has settled."""
        return self._coming[key] if key in self._coming else self.find(key)

    def within(self, namespace: str) -> Mapping[str, _V]:
        """All of a namespace, in the order in which the names came."""
        return self._kept.get(namespace, {})

    def __iter__(self) -> Iterator[tuple[TableKey, _V]]:
        """All that is there."""
        return (((namespace, name), value) for namespace, kept in self._kept.items() for name, value in kept.items())

    def admit(self, changes: Mapping[TableKey, _V | None]) -> None:
        """Return where there is room for these changes together. What takes no more than before always has room.

        Raises Refusal: store_full.
        """
        before = [value for key in changes if (value := self.latest(key)) is not None]
        after = [value for value in changes.values() if value is not None]
        count, held = self.count + len(after) - len(before), self.held + self._sum(after) - self._sum(before)
        most, most_bytes = self._quota
        if count > max(most, self.count):
            raise self._full(f"{self.count} {self.plural}", f"at most {most} {self.plural}")
        if held > max(most_bytes, self.held):
            wanted = f"{self._sum(after)} bytes"
            raise self._full(f"{self.plural} of {self.held} bytes", f"at most {most_bytes} bytes", wanted)

    def expect(self, key: TableKey, value: _V | None) -> None:
        """From now on, this is coming; None: the end of what is there."""
        self._counted(self.latest(key), value)
        self._coming[key] = value

    def settle(self, key: TableKey, value: _V | None) -> None:
        """What was expected is there."""
        self._coming.pop(key, None)
        self._put(key, value)

    def drop(self, key: TableKey) -> None:
        """What was expected is not coming."""
        if key in self._coming:
            self._counted(self._coming.pop(key), self.find(key))

    def load(self, key: TableKey, value: _V | None) -> None:
        """Take up what was kept before: it is there whatever the quota has become."""
        self._counted(self.find(key), value)
        self._put(key, value)

    def _put(self, key: TableKey, value: _V | None) -> None:
        namespace, name = key
        if value is not None:
            self._kept.setdefault(namespace, {})[name] = value
            return
        kept = self._kept.get(namespace, {})
        kept.pop(name, None)
        if not kept:
            self._kept.pop(namespace, None)

    def _counted(self, before: _V | None, after: _V | None) -> None:
        self.count += (after is not None) - (before is not None)
        self.held += self._sum([] if after is None else [after]) - self._sum([] if before is None else [before])

    def _sum(self, values: list[_V]) -> int:
        return sum(map(self._nbytes, values))

    @staticmethod
    def _full(held: str, expected: str, needed: str | None = None) -> Refusal:
        more = f", and this takes {needed}" if needed else ""
        detail = f"the server keeps {held} already, of {expected}{more}; delete what is no longer needed"
        return Refusal("store_full", detail, expected=expected, got=needed or "one more")
