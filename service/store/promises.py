"""Promises: values that an owner does not change for a moment, so that other servers may answer from copies of them.

A server that asks the owner of a shard for tensors or a graph may use the answer again for PROMISED seconds, without a
question:

    B asks A for w              A answers “etag 5, for 25 ms”, and B computes with w for 25 ms without asking
    a client writes w through A   A writes the commit to the store, waits until the promise is over, and only then
                                  changes its table and answers

So a read through B is of a moment at which the owner had that value. B counts from before its question and A from its
answer, and A waits a fifth longer, since clocks may differ by that. A promise is never longer than the owner may answer
from memory itself, and a server that takes over waits for that time. The owner makes no promises about names that are
being written, so that no write is put off again and again. A commit to an object store usually takes longer than a
promise, and then nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from service.store.writes import Name

#: seconds of a promise, and the factor by which clocks may differ
PROMISED: Final = 0.025
_MARGIN: Final = 1.2
#: number of names from which on promises that are over are forgotten
_MANY: Final = 4096


class Promises:
    """Promises of one store, for one event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        #: when promises about names are over
        self._ends: dict[Name, float] = {}

    def make(self, names: Iterable[Name], most: float) -> float:
        """Promise that these names do not change, for at most `most` seconds; return for how many."""
        seconds, now = min(PROMISED, most / _MARGIN), self._clock()
        if len(self._ends) > _MANY:
            self._ends = {name: end for name, end in self._ends.items() if end > now}
        self._ends |= dict.fromkeys(names, now + seconds * _MARGIN)
        return seconds

    def left(self, names: Iterable[Name] | None = None) -> float:
        """Return the seconds until the promises about these names, or all of them, are over."""
        ends = self._ends.values() if names is None else (self._ends[name] for name in names if name in self._ends)
        return max(0.0, max(ends, default=0.0) - self._clock())
