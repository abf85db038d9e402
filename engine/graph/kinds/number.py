"""Attributes that are numbers, lists of numbers, truth values, names or dtypes."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from typing import Any, ClassVar

from engine.graph.kinds.kind import AttributeKind, JsonSchema


class FloatKind(AttributeKind):
    """A finite number, as a double."""

    name = "float"
    position = 2
    wanted = "a finite number"
    roughly = "a number"
    forms: ClassVar[tuple[type, ...]] = (float,)
    samples: ClassVar[tuple[Any, ...]] = (0.0, -0.0, 1, 0.1, -1e308)

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        number = isinstance(stated, (int, float)) and not isinstance(stated, bool)
        return number and (isinstance(stated, float) or abs(stated) <= 2**1023) and math.isfinite(stated)

    def bound(self, stated: Any) -> float:
        """The nearest double."""
        return float(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A number."""
        return {"type": "number", "format": "double"}

    def canonical(self, value: Any) -> Any:
        """The 16 hexadecimal digits of the double, big-endian, so that no two languages write it differently."""
        return struct.pack(">d", value).hex()

    def key(self, value: Any) -> Hashable:
        """Tell numbers apart by all of their bits: 0.0 is not -0.0."""
        return "float", value.hex()
