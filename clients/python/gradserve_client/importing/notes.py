"""Notes: facts about an import that are not errors, but that a reader of the graph may wonder about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A remark on a part of the model, with the number of its occurrences.

    `kind` is "op" for an op that became several nodes, "leaf" for a leaf, and "model" for anything else.
    """

    kind: str
    about: str
    times: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.about} ({self.times}×): {self.sentence}" if self.times > 1 else f"{self.about}: {self.sentence}"


class Tally:
    """A count of the ops of a model, and of the nodes that each became."""

    def __init__(self) -> None:
        self.occurrences: Counter[str] = Counter()
        self._node_ops: dict[str, list[tuple[str, ...]]] = {}

    def count(self, op: str, node_ops: Iterable[str]) -> None:
        """Count an occurrence of an op, and the ops of the nodes that it became."""
        self.occurrences[op] += 1
        self._node_ops.setdefault(op, []).append(tuple(node_ops))

    def node_counts(self, op: str) -> tuple[int, int]:
        """Return the smallest and the largest number of nodes that an occurrence of the op became."""
        counts = [len(node_ops) for node_ops in self._node_ops.get(op, [()])]
        return min(counts), max(counts)

    def notes(self) -> Iterator[Note]:
        """Return a note for each op that became more than one node."""
        for op, occurrences in self._node_ops.items():
            longest = max(occurrences, key=len)
            expanded = sum(len(each) > 1 for each in occurrences)
            if expanded:
                names = ", ".join(f"{count} {name}" if count > 1 else name for name, count in Counter(longest).items())
                bound = "" if len({len(each) for each in occurrences}) == 1 else "up to "
                yield Note("op", op, expanded, f"becomes {bound}{len(longest)} nodes: {names}")
