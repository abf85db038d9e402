"""Journal of a server's state: the interface through which commits become durable, and a journal that keeps nothing.

The state lives in tables in memory, from which requests are answered. A journal makes it survive a restart. It is read
once, at the start, and then only written:

    load()             tensors, graphs, models and answers, as the last commits left them
    commit([a, b, c])  returns when the batch is durable; only then do tables change, and clients get their answers
    commit([d])        …
    close()

(Writes that need not be durable change the tables at once, and go with a later commit.) A commit succeeds, or fails
with `StateFull` or OSError and counts as not made. If the storage gives no answer, it is repeated until there is one;
only when the server is told to stop does it end in doubt (`StateUnknown`).

A place may be reached by several servers, as a bucket is. Only one of them, the owner, writes at a time, but it may
lose the place without being told, and its tables are then out of date. So before an answer from memory, the server
asks `holds`: is it known, without any I/O, that memory is current? If not, `look` finds out, or raises `StateLost`.
For a place that only this server can reach, `holds` is always true.

`ObjectJournal` implements this on a folder or an object store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol

from service.store.writes import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite

#: clock that continues while the machine sleeps, if the system has one: leases end during sleep, too
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class StateFull(Exception):
    """Lack of space for a commit, which is not made; the earlier state stays."""


class StateLost(Exception):
    """Loss of the place to another server; this one has stopped writing."""


class StateUnknown(Exception):
    """Unknown outcome of a commit; this server will not learn it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """State at the start: tensors, graphs in the order of registration, answers not expired, models.

    Tensors without data have theirs in the journal alone, since there was no room for it.
    """

    tensors: list[TensorWrite] = field(default_factory=list)
    graphs: list[GraphWrite] = field(default_factory=list)
    answers: list[AnswerRecord] = field(default_factory=list)
    models: list[ModelWrite] = field(default_factory=list)


#: function from the bytes that are wanted to those that there is room for
Reserve = Callable[[int], int]


class Journal(Protocol):
    """Atomic commits. One thread at a time commits. `holds`, `lease_left`, `keeps`, `is_blind` and `give_up` do
    not block; all other methods do.
    """

    shared: bool
    """Whether other servers may write to the same place, so that the state in memory may be out of date."""

    def load(self, reserve: Reserve = int) -> Loaded:
        """Load the state; called once, before the first commit. `reserve` grants the data of tensors memory.

        Raises RuntimeError with one sentence if the place is damaged, not ours, or cannot be read; Taken if servers
        share it, and another one has just begun there.
        """

    def keeps(self, namespace: str, name: str, etag: str) -> bool:
        """Return whether the last version of a tensor in the journal has this etag."""

    def read(self, namespace: str, name: str, etag: str) -> bytes | None:
        """Read the data of a tensor; None if its last version in the journal has another etag. For any thread.

        Raises OSError, and RuntimeError if it is damaged.
        """

    def commit(self, batch: Sequence[Commit]) -> None:
        """Make a batch of commits durable; later commits of the batch replace earlier ones.

        After StateFull, StateLost and OSError, the batch counts as not made while this server runs; if the server is
        killed before its next commit, the batch may turn up at the next start. After StateUnknown, either is possible.
        """

    def holds(self) -> bool:
        """Return whether memory (`load` and the commits since) is known to be current without a look."""

    def lease_left(self) -> float:
        """Return for how many seconds that is known."""

    def look(self) -> None:
        """Look whether memory is current; any thread may call this. Raises StateLost, OSError."""

    def is_blind(self) -> bool:
        """Return whether the storage has not answered for so long that another server should take over."""

    def give_up(self) -> None:
        """Stop repeating a commit whose outcome is unknown, so that `commit` returns."""

    def close(self, successor: str | None = None) -> None:
        """Tidy up, and release the place, to the server at `successor` if given: this server answers no more."""


class MemoryJournal:
    """Journal of a server whose state ends with it: the state is in the tables only."""

    shared = False

    def load(self, reserve: Reserve = int) -> Loaded:
        """Return an empty state."""
        return Loaded()

    def keeps(self, namespace: str, name: str, etag: str) -> bool:
        """Return False: nothing is kept."""
        return False

    def read(self, namespace: str, name: str, etag: str) -> bytes | None:
        """Return None."""
        return None

    def commit(self, batch: Sequence[Commit]) -> None:
        """Keep nothing."""

    def holds(self) -> bool:
        """Return True: there is no other copy of the state."""
        return True

    def lease_left(self) -> float:
        """Return infinity."""
        return float("inf")

    def look(self) -> None:
        """Do nothing."""

    def is_blind(self) -> bool:
        """Return False."""
        return False

    def give_up(self) -> None:
        """Do nothing."""

    def close(self, successor: str | None = None) -> None:
        """Do nothing."""


class Environment:
    """Clock, threads and locks of the system, as a journal uses them. A simulation replaces them."""

    def now(self) -> float:
        """Return the seconds since an arbitrary moment, counting the time in which the machine slept."""
        return time.clock_gettime(_CLOCK)

    def today(self) -> float:
        """Return the Unix time in seconds, on which machines agree approximately."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep for `seconds` seconds."""
        time.sleep(seconds)

    def lock(self) -> AbstractContextManager[object]:
        """Return a new lock."""
        return Lock()

    def threads(self, count: int, name: str) -> Executor:
        """Return an executor of at most `count` threads."""
        return ThreadPoolExecutor(count, name)


SYSTEM: Final = Environment()
