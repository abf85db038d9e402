"""The opset as one object: ops by all their names, and one type for each attribute name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

from engine.graph.errors import UnknownOp, printable
from engine.graph.familiar import familiar_ops
from engine.graph.kinds.kind import AttributeKind
from engine.graph.near import nearest, plain
from engine.graph.op import Definition


class Registry:
    """The opset: canonical names, the spellings of other systems, and one type for each attribute name."""

    def __init__(self, ops: Iterable[Definition]) -> None:
        """Raises ValueError when two ops claim one name or one attribute name has two kinds."""
        self.ops: Mapping[str, Definition] = MappingProxyType(
            _unique((op.name, op) for op in sorted(ops, key=lambda op: op.name))
        )
        self._spellings = _unique((s.lower(), op) for op in self.ops.values() for s in _spellings(op))
        self.attributes: Mapping[str, AttributeKind] = MappingProxyType(_attribute_kinds(self.ops.values()))

    def find(self, spelling: str) -> Definition | None:
        """The op of this canonical name or alias, ignoring case."""
        return self._spellings.get(spelling.lower())

    def get(self, spelling: str) -> Definition:
        """As `find`. Raises UnknownOp with the op that may be meant."""
        op = self.find(spelling)
        if op is None:
            raise self._unknown(spelling)
        return op

    def hint(self, spelling: str) -> str | None:
        """“did you mean silu?” for a name that `find` does not know; None where nothing is near.

        Known spellings of other systems come first, then names of ours that are near, then names of theirs.
        """
        name, ours, theirs = plain(spelling), *self._suggested
        meant = ours | theirs
        near = name if name in meant else nearest(name, ours) or nearest(name, theirs)
        return None if near is None else f"did you mean {meant[near]}?"

    def _unknown(self, spelling: str) -> UnknownOp:
        hint = self.hint(spelling) or "GET /v1/ops lists all ops"
        shown = printable(spelling)
        return UnknownOp(
            f"there is no op called “{shown}”; {hint}", expected="the name or an alias of an op", got=shown
        )

    @cached_property
    def _suggested(self) -> tuple[dict[str, str], dict[str, str]]:
        """What to suggest for each plain name of ours, and for each of another system where we have the op."""
        ours = {plain(spelling): op.name for spelling, op in self._spellings.items()}
        known = (familiar for familiar in familiar_ops() if familiar.op in self.ops)
        return ours, {plain(name): f"{op} ({note})" if note else op for name, op, _, note in known}


def _spellings(op: Definition) -> set[str]:
    return {op.name, *(alias.lower() for alias in op.aliases)}


def _unique(pairs: Iterable[tuple[str, Definition]]) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for name, op in pairs:
        if name in found:
            raise ValueError(f"two ops are called {name}: {found[name]!r} and {op!r}")
        found[name] = op
    return found


def _attribute_kinds(ops: Iterable[Definition]) -> dict[str, AttributeKind]:
    kinds: dict[str, AttributeKind] = {}
    for op in ops:
        for name, attr in op.attrs.items():
            if kinds.setdefault(name, attr.definition) is not attr.definition:
                raise ValueError(f"attribute {name} is {attr.kind} in {op.name} and {kinds[name].name} elsewhere")
    return dict(sorted(kinds.items()))
