"""Journal of a server's state, commit by commit: its interface, and the journal of a state in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol

from service.store.writes import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite

#: a clock that goes on while the machine sleeps, if the system has one: a lease ends during sleep
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class StateFull(Exception):
    """Lack of space for a commit: nothing of it is kept, and the earlier state stays."""


class StateLost(Exception):
    """Loss of the place to another server; this one writes nothing any more."""


class StateUnknown(Exception):
    """Unknown outcome of a commit, which this server will not learn."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """State at the start: tensors with their data, graphs in the order in which they came, fresh answers, models."""

    tensors: list[TensorWrite] = field(default_factory=list)
    graphs: list[GraphWrite] = field(default_factory=list)
    answers: list[AnswerRecord] = field(default_factory=list)
    models: list[ModelWrite] = field(default_factory=list)


class Journal(Protocol):
    """Atomic commits. All methods block but `holds` and `give_up`; one thread at a time commits."""

    shared: bool
    """Whether other servers may write to the same place, so that the state in memory may be out of date."""

    def load(self) -> Loaded:
        """Load the state; called once, before the first commit.

        Raises RuntimeError with one sentence if the place is damaged, not ours, or cannot be read; Taken if servers
        share it, and another one has just begun there.
        """

    def commit(self, batch: Sequence[Commit]) -> None:
        """Keep a batch: when this returns, it is on disk; later commits of the batch replace earlier ones.

        After StateFull, StateLost and OSError, nothing of it is kept as long as this server goes on; if the server is
        killed before the next commit, the batch may be found kept. After StateUnknown, it is kept or not.
        """

    def holds(self) -> bool:
        """Return whether memory (`load` and the commits since) is known to be current without a look."""

    def look(self) -> None:
        """Look whether memory is current; any thread may call this. Raises StateLost, OSError."""

    def give_up(self) -> None:
        """Stop repeating a commit whose outcome is unknown: it returns."""

    def close(self) -> None:
        """Tidy up, and release the place: nothing is answered any more."""


class MemoryJournal:
    """Journal of a server whose state ends with it: the state is in its tables alone."""

    shared = False

    def load(self) -> Loaded:
        """Return an empty state."""
        return Loaded()

    def commit(self, batch: Sequence[Commit]) -> None:
        """Keep nothing."""

    def holds(self) -> bool:
        """Return True: there is no other copy of the state."""
        return True

    def look(self) -> None:
        """Do nothing."""

    def give_up(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Surroundings:
    """Clock, threads and locks of a journal: those of the system. A simulation replaces them."""

    def now(self) -> float:
        """Return the seconds since some moment, including those in which the machine slept."""
        return time.clock_gettime(_CLOCK)

    def today(self) -> float:
        """Return the seconds since 1970, which other machines have too, about."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)

    def lock(self) -> AbstractContextManager[object]:
        """Make a lock."""
        return Lock()

    def threads(self, count: int, name: str) -> Executor:
        """Return an executor of at most `count` threads."""
        return ThreadPoolExecutor(count, name)


SYSTEM: Final = Surroundings()
