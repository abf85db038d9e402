"""Lists of whole numbers: shapes, axes, indices."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

from engine.graph.kinds.kind import LONGEST_REMEMBERED, AttributeKind, JsonSchema
from engine.graph.kinds.whole_number import WHOLE, is_whole


class IntsKind(AttributeKind):
    """A list of whole numbers of 64 bits; a tuple, once it is bound."""

    name = "ints"
    position = 5
    wanted = "a list of whole numbers of 64 bits"
    roughly = "a list of whole numbers"
    forms = (tuple,)
    samples: ClassVar[tuple[Any, ...]] = ([], [2, -1], [2**63 - 1])
    is_list = True

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        return isinstance(stated, (list, tuple)) and all(map(is_whole, stated))

    def bound(self, stated: Any) -> tuple[int, ...]:
        """Return a tuple, which nobody can change."""
        return tuple(stated)

    def is_bound(self, value: Any) -> bool:
        """A tuple of Python's own numbers."""
        return type(value) is tuple and all(type(entry) is int for entry in value)

    def stated(self, value: Any) -> list[int]:
        """Return a list."""
        return list(value)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An array of integers."""
        return {"type": "array", "items": WHOLE}

    def key(self, value: Any) -> Hashable:
        """The numbers themselves: there may be a million, and they tell types and bits apart as they are.

        Of tuples with anything else in them, what Python shows of it.
        """
        return ("ints", value) if set(map(type, value)) <= {int} else ("tuple", *map(repr, value))

    def is_remembered(self, value: Any) -> bool:
        """Remember lists of few entries."""
        return len(value) <= LONGEST_REMEMBERED
