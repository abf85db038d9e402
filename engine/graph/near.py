"""The nearest of the known names, for a name that is probably misspelt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: characters of a name that are looked at; what a client sends may be a million times as long
LOOKED_AT: Final = 64


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
