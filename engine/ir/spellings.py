"""Spellings of ops: canonical names, aliases, and suggestions for other names.

It loads no ops, since processes that only show messages need it, too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

#: number of characters of a name that are compared: a client may send megabytes
LOOKED_AT: Final = 64

# Names that other systems use for ops and attributes, in `familiar_names.toml`, read on first use.
#
# These are not aliases: a request that uses one is rejected, with a suggestion of our name.


class Familiar(NamedTuple):
    """Another system's name: the op it stands for, the systems that use it, and a hint on differences."""

    name: str
    op: str
    systems: tuple[str, ...]
    note: str


def familiar_systems() -> Mapping[str, str]:
    """Return the titles of the systems, by key."""
    titles: Mapping[str, str] = _read_table()["systems"]
    return titles


@cache
def familiar_ops() -> tuple[Familiar, ...]:
    """Return every name of an op, in the table's order."""
    return tuple(
        Familiar(name, op, tuple(systems.split(", ")), note)
        for op, names in _read_table()["ops"].items()
        for name, entry in names.items()
        for systems, _, note in [entry.partition(": ")]
    )


def familiar_attributes() -> Mapping[str, Sequence[str]]:
    """Return names of attributes, with the candidates among ours, the likeliest first."""
    names: Mapping[str, Sequence[str]] = _read_table()["attributes"]
    return names


def join_hint(sentence: str, advice: str) -> str:
    """Return a sentence that ends with a hint, if there is one."""
    return f"{sentence}; {advice}" if advice else sentence


def choice_hint(word: str, choices: Iterable[str]) -> str:
    """Return “did you mean float64?” for a word that is none of `choices`; "" if none of them is close.

    The dtypes of other systems come first.
    """
    known = {plain(choice): choice for choice in choices}
    names: Mapping[str, Sequence[str]] = _read_table()["dtypes"]
    meant = [name for name in names.get(plain(word), ()) if name in known]
    if not meant and (closest := nearest(plain(word), known)):
        meant = [known[closest]]
    return f"did you mean {' or '.join(meant)}?" if meant else ""


@cache
def _read_table() -> Mapping[str, Any]:
    return tomllib.loads((files("engine.ir") / "familiar_names.toml").read_text(encoding="utf-8"))


def plain(name: str) -> str:
    """Return a name without prefix (`torch.`), case and underscores, for comparison. At most LOOKED_AT characters."""
    return name[:LOOKED_AT].replace("::", ".").rpartition(".")[2].replace("_", "").lower()


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that `name` is most likely a typo of; None if none is close. All names are `plain`.

    A typo is one edit per three letters, at most three. Typos in the first letter are rare, so one counts as two edits.
    Among equally close names, a longer one is preferred: letters are omitted more often than inserted. Failing that,
    one name may be a prefix of the other: at least three letters, and two fifths of the longer name.
    """
    name, names = name[:LOOKED_AT], sorted(names)
    max_edits = min(len(name) // 3, 3)
    typos = [
        (
            _edit_distance(name, candidate) + (name[:1] != candidate[:1]),
            not _is_prefix(name, candidate),
            len(candidate) < len(name),
            candidate,
        )
        for candidate in names
        if abs(len(candidate) - len(name)) <= max_edits
    ]
    count, _, _, best = min(typos, default=(max_edits + 1, True, True, ""))
    if count <= max_edits:
        return best
    prefixed = [
        (-min(len(name), len(candidate)), len(candidate), candidate)
        for candidate in names
        if _is_prefix(name, candidate)
    ]
    return min(prefixed)[-1] if prefixed else None


def _is_prefix(name: str, other: str) -> bool:
    short, long = sorted((name, other), key=len)
    return len(short) >= 3 and 5 * len(short) >= 2 * len(long) and long.startswith(short)


def _edit_distance(a: str, b: str) -> int:
    """Return the number of letters to insert, delete, replace or swap with their neighbour to turn `a` into `b`."""
    row_before_previous: list[int] = []
    previous_row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            is_swap = i and j and x == b[j - 1] and y == a[i - 1]
            edits = min(previous_row[j + 1] + 1, row[j] + 1, previous_row[j] + (x != y))
            row.append(min(edits, row_before_previous[j - 1] + 1) if is_swap else edits)
        row_before_previous, previous_row = previous_row, row
    return previous_row[-1]


class Spellings:
    """Index of the names of ops, without the ops themselves."""

    def __init__(self, aliases: Mapping[str, Iterable[str]]) -> None:
        """Take each op's canonical name with its aliases. Raises ValueError if two ops share a spelling."""
        self._names: dict[str, str] = {}
        for name, op_aliases in aliases.items():
            for spelling in {name.lower(), *(alias.lower() for alias in op_aliases)}:
                if spelling in self._names:
                    raise ValueError(f"two ops are called {spelling}: {self._names[spelling]} and {name}")
                self._names[spelling] = name

    def find(self, spelling: str) -> str | None:
        """Return the canonical name for a canonical name or alias, ignoring case."""
        return self._names.get(spelling.lower())

    def hint(self, spelling: str) -> str | None:
        """Return “did you mean silu?” for a name that `find` does not know, or None if no name is close.

        Known names of other systems come first, then our names that are close, then theirs.
        """
        name, ours, theirs = plain(spelling), *self._suggested
        suggestions = ours | theirs
        match = name if name in suggestions else nearest(name, ours) or nearest(name, theirs)
        return None if match is None else f"did you mean {suggestions[match]}?"

    @cached_property
    def _suggested(self) -> tuple[dict[str, str], dict[str, str]]:
        """Suggestions for each plain name of ours, and for each name of another system whose op we have."""
        ours, ops = {plain(spelling): name for spelling, name in self._names.items()}, {*self._names.values()}
        known = (familiar for familiar in familiar_ops() if familiar.op in ops)
        return ours, {plain(name): f"{op} ({note})" if note else op for name, op, _, note in known}
