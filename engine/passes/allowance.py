"""Allowance of one request for optimising: FLOPs of folded constants, and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from engine.graph.limits import NO_DEADLINE, NO_END, Deadline

_Item = TypeVar("_Item")

#: how often the deadline is looked at
NODES_BETWEEN_LOOKS: Final = 256


class Allowance(NamedTuple):
    """The request's FLOPs, which folding counts towards, and its deadline, which every pass looks at.

    `stops_stay`: the graph is yet to be differentiated, and what stops gradients stays in it.
    """

    flops: int = NO_END
    deadline: Deadline = NO_DEADLINE
    stops_stay: bool = False

    def over(self, items: Sequence[_Item]) -> Iterable[_Item]:
        """`items` one by one, as long as there is time. Raises DeadlineExceeded."""
        self.deadline.check()
        return items if len(items) <= NODES_BETWEEN_LOOKS else self._looking(items)

    def _looking(self, items: Sequence[_Item]) -> Iterator[_Item]:
        for start in range(0, len(items), NODES_BETWEEN_LOOKS):
            self.deadline.check()
            yield from items[start : start + NODES_BETWEEN_LOOKS]


UNBOUNDED: Final = Allowance()
