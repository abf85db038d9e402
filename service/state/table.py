"""Tables in memory of what is kept, by namespace and name: tensors, graphs and models, each within a quota.

What has been decided upon and is still being written is *coming*: it counts against the quota, and is not seen yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from service.errors import Refusal

_V = TypeVar("_V")
TableKey = tuple[str, str]  # namespace and name


class Quota(NamedTuple):
    """Quota of things, and of the bytes that they may take together."""

    most: int
    most_bytes: int


#: what a namespace may keep; None: as much as there is memory for
Share = Callable[[str], Quota]


class Table(Generic[_V]):
    """Things by key. For one thread.

    What is *coming* has been decided upon and is being written. It counts, and whoever decides next sees it (`latest`);
    others see it once it has settled (`get`).
    """

    #: what the things are called
    plural = "things"

    def __init__(self, quota: Quota, nbytes: Callable[[_V], int], share: Share | None = None) -> None:
        """`quota` is for all together, and `share` for each namespace, where there are several."""
        self._quota = quota
        self._share = share
        self._nbytes = nbytes
        self._of: dict[str, Quota] = {}  # what each namespace has now
        self._kept: dict[str, dict[str, _V]] = {}
        self._coming: dict[TableKey, _V | None] = {}
        #: how many things, and bytes of them, other tables have out of the same quota
        self.beside: Callable[[], Quota] = lambda: _NOTHING
        self.count = 0
        self.held = 0

    def find(self, key: TableKey) -> _V | None:
        """Return the value that everybody sees."""
        return self._kept.get(key[0], {}).get(key[1])

    def latest(self, key: TableKey) -> _V | None:
        """Return the value that will be there when all that is coming has settled."""
        return self._coming[key] if key in self._coming else self.find(key)

    def within(self, namespace: str) -> Mapping[str, _V]:
        """Return the values of a namespace, in the order in which the names came."""
        return self._kept.get(namespace, {})

    def all_latest(self, namespace: str) -> Iterator[tuple[str, _V]]:
        """Iterate over what will be in a namespace when all that is coming has settled, by name."""
        coming = {name: value for (other, name), value in self._coming.items() if other == namespace}
        return ((name, value) for name, value in {**self.within(namespace), **coming}.items() if value is not None)

    def __iter__(self) -> Iterator[tuple[TableKey, _V]]:
        """Iterate over all values."""
        return (((namespace, name), value) for namespace, kept in self._kept.items() for name, value in kept.items())

    def admit(self, changes: Mapping[TableKey, _V | None]) -> None:
        """Return where there is memory for these changes together. What takes no more than before always fits.

        A namespace is told of itself alone: what others keep is nobody's business. Raises Refusal: store_full.
        """
        for namespace in dict.fromkeys(namespace for namespace, _ in changes):
            self._admit_share(namespace, {key: value for key, value in changes.items() if key[0] == namespace})
        count, held = self._growth(changes)
        (most, most_bytes), beside = self._quota, self.beside()
        most, most_bytes = most - beside.most, most_bytes - beside.most_bytes
        if self.count + count > max(most, self.count):
            raise self._full_for_all(f"{self.count} {self.plural}", f"at most {most} {self.plural}")
        if self.held + held > max(most_bytes, self.held):
            wanted = f"{self._sum(list(changes.values()))} bytes"
            raise self._full_for_all(f"{self.plural} of {self.held} bytes", f"at most {most_bytes} bytes", wanted)

    def _admit_share(self, namespace: str, changes: Mapping[TableKey, _V | None]) -> None:
        """Raise Refusal (store_full) where a namespace would keep more than its share, and more than before."""
        if self._share is None:
            return
        (count, held), (has, has_bytes) = self._growth(changes), self._of.get(namespace, _NOTHING)
        most, most_bytes = self._share(namespace)
        if has + count > max(most, has):
            raise table_full(f"your namespace keeps {has} {self.plural}", f"at most {most} {self.plural}")
        if has_bytes + held > max(most_bytes, has_bytes):
            wanted = f"{self._sum(list(changes.values()))} bytes"
            kept = f"your namespace keeps {self.plural} of {has_bytes} bytes"
            raise table_full(kept, f"at most {most_bytes} bytes", wanted)

    def _growth(self, changes: Mapping[TableKey, _V | None]) -> tuple[int, int]:
        """Return the growth of the count and of the bytes."""
        before, after = [self.latest(key) for key in changes], list(changes.values())
        count = sum(value is not None for value in after) - sum(value is not None for value in before)
        return count, self._sum(after) - self._sum(before)

    def expect(self, key: TableKey, value: _V | None) -> None:
        """Note that this value is coming; None: the end of what is there."""
        self._counted(key[0], self.latest(key), value)
        self._coming[key] = value

    def settle(self, key: TableKey, value: _V | None) -> None:
        """Settle the value that was expected."""
        self._coming.pop(key, None)
        self._put(key, value)

    def drop(self, key: TableKey) -> None:
        """Drop the value that was expected: it is not coming."""
        if key in self._coming:
            self._counted(key[0], self._coming.pop(key), self.find(key))

    def load(self, key: TableKey, value: _V | None) -> None:
        """Take up what was kept before: it is there whatever the quota has become."""
        self._counted(key[0], self.find(key), value)
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

    def _counted(self, namespace: str, before: _V | None, after: _V | None) -> None:
        count, held = (after is not None) - (before is not None), self._sum([after]) - self._sum([before])
        self.count, self.held = self.count + count, self.held + held
        has, has_bytes = self._of.pop(namespace, _NOTHING)
        if has + count:
            self._of[namespace] = Quota(has + count, has_bytes + held)

    def _sum(self, values: Iterable[_V | None]) -> int:
        return sum(self._nbytes(value) for value in values if value is not None)

    def _full_for_all(self, held: str, expected: str, needed: str | None = None) -> Refusal:
        """The refusal where the server has no memory: with several namespaces, it tells nobody what the others keep."""
        if self._share is None:
            return table_full(f"the server keeps {held}", expected, needed)
        detail = f"the server has no room for more {self.plural}, though your namespace has not filled its share"
        return Refusal("store_full", detail, got=needed or "one more")


_NOTHING: Final = Quota(0, 0)


def table_full(held: str, expected: str, needed: str | None = None) -> Refusal:
    """The refusal where so much is held already, and no more may be than is `expected`."""
    more = f", and this takes {needed}" if needed else ""
    detail = f"{held} already, of {expected}{more}; delete what is no longer needed"
    return Refusal("store_full", detail, expected=expected, got=needed or "one more")
