"""Contact with a store that may stop answering: since when it has been lost, and when to try again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: seconds before the next attempt: after the first failure, and at most
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class Contact:
    """Record of the attempts to reach a store. One thread makes attempts at a time, and any may ask."""

    def __init__(self, patience: float, now: Callable[[], float]) -> None:
        """Contact is lost after `patience` seconds without an answer; `now` returns the time in seconds."""
        self._patience, self._now = patience, now
        self._is_asking = False
        #: time of the first attempt since the last answer, and of the last failure
        self._asked: float | None = None
        self._failed = now()

    @property
    def is_lost(self) -> bool:
        """Whether attempts have gone without an answer for too long. A failure that is not repeated is forgotten."""
        asked = self._asked
        if asked is None:
            return False
        now = self._now()
        if not self._is_asking and now - self._failed >= self._patience:
            return False
        return (now if self._is_asking else self._failed) - asked >= self._patience

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Record the block as an attempt, which fails by an OSError."""
        now = self._now()
        if self._asked is None or now - self._failed >= self._patience:
            self._asked = now
        self._is_asking = True
        try:
            yield
        except OSError:
            self._failed = self._now()
            raise
        else:
            self._asked = None
        finally:
            self._is_asking = False


class Retries:
    """Pauses before attempts that follow a failure, and a log of two lines for any number of failures."""

    def __init__(self, logger: logging.Logger, now: Callable[[], float]) -> None:
        self._logger, self._now = logger, now
        self._failures, self._began = 0, 0.0
        self._pause, self._next = _FIRST_PAUSE, 0.0

    @property
    def pause(self) -> float:
        """Seconds to wait before the next attempt."""
        return max(0.0, self._next - self._now())

    def failed(self, problem: str) -> None:
        """Record a failure, and log the first one."""
        if not self._failures:
            self._began = self._now()
            self._logger.warning("%s", problem)
        self._failures += 1
        self._next = self._now() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def succeeded(self) -> None:
        """Record a success, and log how many attempts failed before it."""
        if self._failures > 1:
            seconds = self._now() - self._began
            self._logger.warning("works again after %d failed attempts in %.0f s", self._failures, seconds)
        self._failures, self._pause, self._next = 0, _FIRST_PAUSE, 0.0
