"""Functions of a graph: stated by their index, bound to one that is typed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

from engine.ir.kinds.kind import AttributeKind, JsonSchema
from engine.ir.kinds.scalars import WHOLE, is_whole


class Callee:
    """Function that an op may run, told from others by a digest of all that it says."""

    __slots__ = ("digest",)

    def __init__(self, digest: bytes) -> None:
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class FunctionKind(AttributeKind):
    """The index of a function among those of the graph; in a typed graph, what that function is for these operands."""

    name = "function"
    position = 8
    wanted = roughly = "the index of a function"
    forms: ClassVar[tuple[type, ...]] = (Callee,)
    samples: ClassVar[tuple[Any, ...]] = (0, 3)

    def admits(self, stated: Any) -> bool:
        """Whether it is a whole number, which is not negative; a program knows how many functions there are."""
        return is_whole(stated) and stated >= 0

    def bound(self, stated: Any) -> int:
        """The index."""
        return int(stated)

    def is_bound(self, value: Any) -> bool:
        """A typed function."""
        return isinstance(value, Callee)

    def printed(self, value: Any) -> Any:
        """Some digits of the digest: its text is another graph's."""
        return value.digest.hex()[:16] if isinstance(value, Callee) else value

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An integer."""
        return WHOLE | {"minimum": 0}

    def key(self, value: Any) -> Hashable:
        """The digest."""
        return self.name, value.digest

    def is_remembered(self, value: Any) -> bool:
        """Never: what is made of a function is kept with it."""
        return False
