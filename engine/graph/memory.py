"""Cache of what rules make of types and attributes: bounded, and exact about numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Generic, TypeVar

from engine.graph.attributes import keyed
from engine.graph.kinds import is_remembered
from engine.graph.kinds.kind import LONGEST_REMEMBERED
from engine.graph.op import Definition

_Made = TypeVar("_Made")

#: how much one memory holds, unless it says otherwise: four thousand entries take about 4 MB
MOST_REMEMBERED: Final = 4096


class Stated(dict[str, Any]):
    """Attributes that are never changed, and what tells them from others: `key`, None where they are not remembered."""

    __slots__ = ("key",)

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        super().__init__(attrs)
        self.key = _key(attrs)


def attributes_key(attrs: Mapping[str, Any]) -> Hashable:
    """Return a key that tells attributes apart: known already, unless they are large."""
    known = attrs.key if isinstance(attrs, Stated) else None
    return keyed(attrs) if known is None else known


def is_small(attrs: Mapping[str, Any]) -> bool:
    """Whether attributes are known to be of the kinds that are remembered: a few numbers and names, and no tensors."""
    return not attrs or (isinstance(attrs, Stated) and attrs.key is not None)


class Memory(Generic[_Made]):
    """`make(op, types, attrs)`, made once for ops, types and attributes that are the same.

    Threads may share it: two that ask for the same at once make it twice, to the same result. Errors are not kept.
    """

    def __init__(
        self, make: Callable[[Definition, tuple[Any, ...], Mapping[str, Any]], _Made], most: int | None = None
    ) -> None:
        """It holds at most so many; None: MOST_REMEMBERED."""
        self._make = make
        self._most = most
        #: what was made; it is made anew where it is not here
        self.known: dict[Hashable, _Made] = {}

    def __len__(self) -> int:
        return len(self.known)

    def __call__(self, op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> _Made:
        """Return what was made, now or before. Raises what `make` raises."""
        said = attrs.key if isinstance(attrs, Stated) else _key(attrs) if attrs else ()
        if said is None or op.several or len(types) > LONGEST_REMEMBERED or tuple in map(type, types):
            return self._make(op, types, attrs)
        number = op, types, said
        known = self.known.get(number)
        if known is None:
            known = self._make(op, types, attrs)
            if len(self.known) >= (self._most or MOST_REMEMBERED):
                self.known.clear()  # what is in use is soon there again, at what it costs without
            self.known[number] = known
        return known


def _key(attrs: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """Return a key that tells attributes apart; None if they are large, or of a kind that is not cached."""
    if not all(map(is_remembered, attrs.values())):
        return None
    return keyed(attrs)
