"""Spellings of ops: canonical names, aliases, and suggestions for names that are neither.

No ops are loaded for it: a process that only shows messages needs it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from engine.graph.familiar import familiar_ops
from engine.graph.near import nearest, plain


class Spellings:
    """Index of the names of ops, without the ops themselves."""

    def __init__(self, aliases: Mapping[str, Iterable[str]]) -> None:
        """Take each op's canonical name with its aliases. Raises ValueError if two ops share a spelling."""
        self._names: dict[str, str] = {}
        for name, others in aliases.items():
            for spelling in {name.lower(), *(other.lower() for other in others)}:
                if spelling in self._names:
                    raise ValueError(f"two ops are called {spelling}: {self._names[spelling]} and {name}")
                self._names[spelling] = name

    def find(self, spelling: str) -> str | None:
        """Return the canonical name for a canonical name or alias, ignoring case."""
        return self._names.get(spelling.lower())

    def hint(self, spelling: str) -> str | None:
        """Return “did you mean silu?” for a name that `find` does not know, or None if none is near.

        Known spellings of other systems come first, then names of ours that are near, then names of theirs.
        """
        name, ours, theirs = plain(spelling), *self._suggested
        meant = ours | theirs
        near = name if name in meant else nearest(name, ours) or nearest(name, theirs)
        return None if near is None else f"did you mean {meant[near]}?"

    @cached_property
    def _suggested(self) -> tuple[dict[str, str], dict[str, str]]:
        """Suggestions for each plain name of ours, and for each name of another system whose op we have."""
        ours, ops = {plain(spelling): name for spelling, name in self._names.items()}, {*self._names.values()}
        known = (familiar for familiar in familiar_ops() if familiar.op in ops)
        return ours, {plain(name): f"{op} ({note})" if note else op for name, op, _, note in known}
