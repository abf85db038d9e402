"""Retries: which errors are transient, how long to wait, and until when. Clock and randomness are injected."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gradserve_client.errors import ConnectionFailed, DeadlineError, GradserveError, Refusal

#: first and longest wait, in seconds
_INITIAL_WAIT: Final = 0.5
_MAX_WAIT: Final = 8.0
_TRANSIENT_STATUSES: Final = frozenset({408, 429, 503})


def _new_key() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Surroundings:
    """A client's environment, replaced in tests: a clock in seconds, random numbers from 0 to 1, new unique keys."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    new_key: Callable[[], str] = _new_key


class Deadline:
    """The time at which a call, with all of its attempts, must be done."""

    def __init__(self, seconds: float | None, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def remaining(self) -> float | None:
        """Return the seconds that remain; None if there is no deadline. Raises DeadlineError if it has passed."""
        if self._end is None:
            return None
        remaining = self._end - self._clock()
        if remaining <= 0:
            raise self.error()
        return remaining

    def admits(self, seconds: float) -> bool:
        """Return whether time remains after a wait of `seconds`."""
        return self._end is None or self._clock() + seconds < self._end

    def error(self) -> DeadlineError:
        """Return the exception for a deadline that has passed."""
        return DeadlineError(f"no response within {self._seconds} s")


@dataclass(frozen=True)
class Policy:
    """The defaults of a client's calls. `timeout` is in seconds for all attempts of a call; None means no limit."""

    timeout: float | None = 60.0
    retries: int = 2
    idempotency: bool = True
    surroundings: Surroundings = field(default_factory=Surroundings)

    def deadline(self, seconds: float | None) -> Deadline:
        """Return the deadline of a call that begins now."""
        return Deadline(seconds, self.surroundings.clock)


class Attempts:
    """The attempts of one call: exponential backoff with jitter."""

    def __init__(self, policy: Policy, deadline: Deadline, *, may_retry: bool) -> None:
        self._retries_left = policy.retries if may_retry else 0
        self._wait = _INITIAL_WAIT
        self._chance = policy.surroundings.chance
        self._deadline = deadline
        self._worker_deaths = 0

    def wait_after(self, error: GradserveError) -> float:
        """Return the seconds to wait before the next attempt. Raises the error if there is none."""
        wait = min(self._wait, _MAX_WAIT) * (0.5 + self._chance() / 2)
        if isinstance(error, Refusal):
            wait = max(wait, error.retry_after or 0)
            self._worker_deaths += error.code == "worker_died"
        # A request that has killed two workers would probably kill the next one.
        if not (self._retries_left and self._worker_deaths < 2 and is_transient(error) and self._deadline.admits(wait)):
            raise error
        self._retries_left -= 1
        self._wait *= 2
        return wait


def is_transient(error: GradserveError) -> bool:
    """Return whether the same request may succeed later."""
    if not isinstance(error, Refusal):
        return isinstance(error, ConnectionFailed)
    return error.status in _TRANSIENT_STATUSES or (error.code == "conflict" and error.retry_after is not None)
