"""Whole numbers: axes, counts, positions."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from engine.graph.kinds.kind import AttributeKind, JsonSchema

WHOLE: Final[JsonSchema] = {"type": "integer", "format": "int64"}
_INT64: Final = range(-(2**63), 2**63)


def is_whole(stated: Any) -> bool:
    """Whether it is a whole number of 64 bits; true and false are none."""
    return isinstance(stated, int) and not isinstance(stated, bool) and stated in _INT64


class IntKind(AttributeKind):
    """A whole number of 64 bits."""

    name = "int"
    position = 1
    wanted = "a whole number of 64 bits"
    roughly = "a whole number"
    forms = (int,)
    samples: ClassVar[tuple[Any, ...]] = (0, -1, 2**63 - 1)

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        return is_whole(stated)

    def bound(self, stated: Any) -> int:
        """Return Python's own type, and no subclass of it."""
        return int(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An integer."""
        return WHOLE
