"""Surroundings of a journal: time, sleep, threads and locks. A simulation gives it others."""

from __future__ import annotations

import time
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final

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
