"""Journal of what a server has to remember, commit by commit: its interface, and one that remembers nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol

from service.store.writes import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite


class StateFull(Exception):
    """Lack of space for a commit: nothing of it is kept, and what was there before stands."""


class StateLost(Exception):
    """Loss of the place to another server; this one writes nothing any more."""


class StateUnknown(Exception):
    """Doubt whether a commit is kept, of which this server finds out no more."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """State that was kept: the tensors that there are, each with its data; graphs in the order in which they came;
    answers that have not expired; models.
    """

    tensors: list[TensorWrite] = field(default_factory=list)
    graphs: list[GraphWrite] = field(default_factory=list)
    answers: list[AnswerRecord] = field(default_factory=list)
    models: list[ModelWrite] = field(default_factory=list)


class Journal(Protocol):
    """Commits, each kept as one. All of it blocks, but for `holds` and `give_up`; one thread at a time commits."""

    shared: bool
    """Whether other servers may write to the same place, so that what is in memory may not be all there is."""

    def load(self) -> Loaded:
        """Load the state that the commits so far come to; once, before the first commit.

        Raises RuntimeError with one sentence where what is there is damaged, not ours, or cannot be read; Taken, where
        servers share the place, and another one has just begun there.
        """

    def commit(self, batch: Sequence[Commit]) -> None:
        """Keep all of a batch: when it returns, it is on disk; later commits of the batch replace earlier ones.

        Nothing of it is kept upon StateFull, StateLost, and an OSError: as far as this server goes on to tell; one that
        is killed before the next commit may find it kept. Upon StateUnknown it is kept or not.
        """

    def holds(self) -> bool:
        """Return whether memory (`load` and the commits since) is known to be current without a look."""

    def look(self) -> None:
        """Find out that it is, while others wait; by any thread. Raises StateLost, OSError."""

    def give_up(self) -> None:
        """Try nothing again: a commit that is in doubt stays so, and returns."""

    def close(self) -> None:
        """Tidy up, and let go of the place: nothing is answered any more."""


class MemoryJournal:
    """A journal for a server whose state ends with it: what is kept is in its tables alone."""

    shared = False

    def load(self) -> Loaded:
        """Return an empty state."""
        return Loaded()

    def commit(self, batch: Sequence[Commit]) -> None:
        """Keep nothing."""

    def holds(self) -> bool:
        """Return True: what is in memory is all there is."""
        return True

    def look(self) -> None:
        """There is nothing to look at."""

    def give_up(self) -> None:
        """There is nothing to try."""

    def close(self) -> None:
        """Let go of nothing."""


# Surroundings of a journal: time, sleep, threads and locks. A simulation gives it others.

#: a clock that goes on while the machine sleeps, where the system has one: whoever slept has no lease any more
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Surroundings:
    """The system's own."""

    def now(self) -> float:
        """Seconds since some moment, those in which the machine slept among them."""
        return time.clock_gettime(_CLOCK)

    def today(self) -> float:
        """Seconds since 1970, as other machines have them too, about."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)

    def lock(self) -> AbstractContextManager[object]:
        """A lock that nobody has."""
        return Lock()

    def threads(self, count: int, name: str) -> Executor:
        """Return an executor of at most `count` threads."""
        return ThreadPoolExecutor(count, name)


#: the system that this process runs on
SYSTEM: Final = Surroundings()
