"""Strings: the name of a variant, or an equation."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.kinds.kind import LONGEST_REMEMBERED, AttributeKind, JsonSchema


class StringKind(AttributeKind):
    """A string."""

    name = "string"
    position = 4
    wanted = roughly = "a string"
    forms = (str,)
    samples: ClassVar[tuple[Any, ...]] = ("", "mean", "é→", "x" * 1000)

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        return isinstance(stated, str)

    def bound(self, stated: Any) -> str:
        """Return Python's own type, and no subclass of it."""
        return str(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A string."""
        return {"type": "string"}

    def is_remembered(self, value: Any) -> bool:
        """Remember strings of few characters."""
        return len(value) <= LONGEST_REMEMBERED
