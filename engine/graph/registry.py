"""The opset as one object: ops by all their names, and one type for each attribute name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from engine.graph.errors import UnknownOp, printable
from engine.graph.op import Definition


class Registry:
    """The opset: canonical names, the spellings of other systems, and one type for each attribute name."""

    def __init__(self, ops: Iterable[Definition]) -> None:
        """Raises ValueError when two ops claim one name or one attribute name has two kinds."""
        self.ops: Mapping[str, Definition] = MappingProxyType(
            _unique((op.name, op) for op in sorted(ops, key=lambda op: op.name))
        )
        self._spellings = _unique((s.lower(), op) for op in self.ops.values() for s in _spellings(op))
        self.attributes: Mapping[str, str] = MappingProxyType(_attribute_kinds(self.ops.values()))

    def find(self, spelling: str) -> Definition | None:
        """The op of this canonical name or alias, ignoring case."""
        return self._spellings.get(spelling.lower())

    def get(self, spelling: str) -> Definition:
        """As `find`. Raises UnknownOp with the nearest name."""
        op = self.find(spelling)
        if op is None:
            raise _unknown(spelling, self._spellings)
        return op


def _spellings(op: Definition) -> set[str]:
    return {op.name, *(alias.lower() for alias in op.aliases)}


def _unique(pairs: Iterable[tuple[str, Definition]]) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for name, op in pairs:
        if name in found:
            raise ValueError(f"two ops are called {name}: {found[name]!r} and {op!r}")
        found[name] = op
    return found


def _attribute_kinds(ops: Iterable[Definition]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for op in ops:
        for name, attr in op.attrs.items():
            if kinds.setdefault(name, attr.kind) != attr.kind:
                raise ValueError(f"attribute {name} is {attr.kind} in {op.name} and {kinds[name]} elsewhere")
    return dict(sorted(kinds.items()))


def _unknown(spelling: str, known: Mapping[str, Definition]) -> UnknownOp:
    near = get_close_matches(spelling[:64].lower(), known, n=1)
    hint = f"; did you mean {known[near[0]].name}?" if near else "; GET /v1/ops lists all ops"
    shown = printable(spelling)
    return UnknownOp(f"there is no op called “{shown}”{hint}", expected="the name or an alias of an op", got=shown)
