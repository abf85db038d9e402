"""Truth values."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.kinds.kind import AttributeKind, JsonSchema


class BoolKind(AttributeKind):
    """True or false."""

    name = "bool"
    position = 3
    wanted = roughly = "true or false"
    forms = (bool,)
    samples: ClassVar[tuple[Any, ...]] = (True, False)

    def admits(self, stated: Any) -> bool:
        """Whether it is one; 0 and 1 are none."""
        return isinstance(stated, bool)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}
