"""What an import has to tell beside its graph: nothing that is wrong, but what a reader of it may wonder about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A remark: what of the model it is about, how often that occurs, and a sentence.

    `kind` is "op" for an op that several nodes say, "leaf" for one of the leaves, "model" for all else.
    """

    kind: str
    about: str
    times: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.about} ({self.times}×): {self.sentence}" if self.times > 1 else f"{self.about}: {self.sentence}"


class Tally:
    """How often each op occurred, and by which nodes it was said."""

    def __init__(self) -> None:
        self.occurrences: Counter[str] = Counter()
        self._said: dict[str, list[tuple[str, ...]]] = {}

    def count(self, op: str, said_by: Iterable[str]) -> None:
        """One more occurrence of an op, and the ops of the nodes that said it."""
        self.occurrences[op] += 1
        self._said.setdefault(op, []).append(tuple(said_by))

    def nodes_of(self, op: str) -> tuple[int, int]:
        """The fewest and the most nodes that an occurrence of an op was said by."""
        counts = [len(said) for said in self._said.get(op, [()])]
        return min(counts), max(counts)

    def notes(self) -> Iterator[Note]:
        """A note for each op that was said by more than one node."""
        for op, said in self._said.items():
            longest = max(said, key=len)
            several = sum(len(each) > 1 for each in said)
            if several:
                names = ", ".join(f"{count} {name}" if count > 1 else name for name, count in Counter(longest).items())
                bound = "" if len({len(each) for each in said}) == 1 else "up to "
                yield Note("op", op, several, f"said by {bound}{len(longest)} nodes: {names}")
