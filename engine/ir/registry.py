"""The opset as one object: ops by all their names, and one type for each attribute name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from engine.ir.errors import UnknownOp, printable
from engine.ir.kinds.kind import AttributeKind
from engine.ir.op import Definition
from engine.ir.spellings import Spellings


class Registry:
    """The opset: canonical names, the spellings of other systems, and one type for each attribute name."""

    def __init__(self, ops: Iterable[Definition]) -> None:
        """Raises ValueError when two ops claim one name or one attribute name has two kinds."""
        self.ops: Mapping[str, Definition] = MappingProxyType(
            _unique((op.name, op) for op in sorted(ops, key=lambda op: op.name))
        )
        self._spellings = Spellings({name: op.aliases for name, op in self.ops.items()})
        self.attributes: Mapping[str, AttributeKind] = MappingProxyType(_attribute_kinds(self.ops.values()))

    def find(self, spelling: str) -> Definition | None:
        """The op of this canonical name or alias, ignoring case."""
        name = self._spellings.find(spelling)
        return None if name is None else self.ops[name]

    def get(self, spelling: str) -> Definition:
        """Return the op of this name, as `find`. Raises UnknownOp with the op that may be meant."""
        op = self.find(spelling)
        if op is not None:
            return op
        hint, shown = self.hint(spelling) or "GET /v1/ops lists all ops", printable(spelling)
        raise UnknownOp(f"there is no op called “{shown}”; {hint}", expected="the name or an alias of an op", got=shown)

    def hint(self, spelling: str) -> str | None:
        """Return “did you mean silu?” for a name that `find` does not know, or None if none is near."""
        return self._spellings.hint(spelling)


def _unique(pairs: Iterable[tuple[str, Definition]]) -> dict[str, Definition]:
    ops: dict[str, Definition] = {}
    for name, op in pairs:
        if name in ops:
            raise ValueError(f"two ops are called {name}: {ops[name]!r} and {op!r}")
        ops[name] = op
    return ops


def _attribute_kinds(ops: Iterable[Definition]) -> dict[str, AttributeKind]:
    kinds: dict[str, AttributeKind] = {}
    for op in ops:
        for name, attr in op.attrs.items():
            if kinds.setdefault(name, attr.definition) is not attr.definition:
                raise ValueError(f"attribute {name} is {attr.kind} in {op.name} and {kinds[name].name} elsewhere")
    return dict(sorted(kinds.items()))
