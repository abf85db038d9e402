"""Spellings of ops: canonical names, aliases, and suggestions for names that are neither.

No ops are loaded for it: a process that only shows messages needs it, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

#: characters of a name that are looked at; what a client sends may be a million times as long
LOOKED_AT: Final = 64

# Names that other systems have for ops and attributes, to suggest ours: `familiar_names.toml`, read on first use.
#
# These are no aliases: a request that uses one is refused, and told the name to use.


class Familiar(NamedTuple):
    """A name, the op that it stands for, the systems that use it, and what else there is to write or to know."""

    name: str
    op: str
    systems: tuple[str, ...]
    note: str


def familiar_systems() -> Mapping[str, str]:
    """Titles of the systems, by key."""
    titles: Mapping[str, str] = _table()["systems"]
    return titles


@cache
def familiar_ops() -> tuple[Familiar, ...]:
    """Every name of an op, in the table's order."""
    return tuple(
        Familiar(name, op, tuple(systems.split(", ")), note)
        for op, names in _table()["ops"].items()
        for name, said in names.items()
        for systems, _, note in [said.partition(": ")]
    )


def familiar_attributes() -> Mapping[str, Sequence[str]]:
    """Names of attributes, and for each the ones of ours that it may stand for, the likeliest first."""
    names: Mapping[str, Sequence[str]] = _table()["attributes"]
    return names


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((files("engine.ir") / "familiar_names.toml").read_text(encoding="utf-8"))


def plain(name: str) -> str:
    """Return a name without prefix (`torch.`), case and underscores, to compare by. At most LOOKED_AT characters."""
    return name[:LOOKED_AT].replace("::", ".").rpartition(".")[2].replace("_", "").lower()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `name` is most likely a slip for; None where it is far from all. Both are `plain`.

    A slip is one edit in three letters, and three at most; it seldom is in the first letter, which counts for two.
    Of names as near, one that is longer comes first: letters are left out more often than put in.
    Failing that, one name may be the beginning of the other: its first three letters at least, and two in five of all.
    """
    name, known = name[:LOOKED_AT], sorted(known)
    allowed = min(len(name) // 3, 3)
    slips = [
        (_edits(name, other) + (name[:1] != other[:1]), not _begins(name, other), len(other) < len(name), other)
        for other in known
        if abs(len(other) - len(name)) <= allowed
    ]
    count, _, _, best = min(slips, default=(allowed + 1, True, True, ""))
    if count <= allowed:
        return best
    begun = [(-min(len(name), len(other)), len(other), other) for other in known if _begins(name, other)]
    return min(begun)[-1] if begun else None


def _begins(name: str, other: str) -> bool:
    short, long = sorted((name, other), key=len)
    return len(short) >= 3 and 5 * len(short) >= 2 * len(long) and long.startswith(short)


def _edits(a: str, b: str) -> int:
    """Letters to put in, leave out, replace or swap with their neighbour to get from `a` to `b`."""
    older: list[int] = []
    before = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            swapped = i and j and x == b[j - 1] and y == a[i - 1]
            change = min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y))
            row.append(min(change, older[j - 1] + 1) if swapped else change)
        older, before = before, row
    return before[-1]


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
