"""When a call is tried again, and after how long: deadlines and tries, with clock and chance handed in."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gradserve_client.errors import ConnectionFailed, DeadlineError, GradserveError, Refusal

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 8.0
_PASSING: Final = frozenset({408, 429, 503})


def _new_key() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Surroundings:
    """What a client has of the world beside the network: seconds, chance (0 to 1), and keys that nobody else has."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    new_key: Callable[[], str] = _new_key


class Deadline:
    """When a call has to be over, all of its tries together."""

    def __init__(self, seconds: float | None, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def left(self) -> float | None:
        """Seconds that are left; None where there is no end. Raises DeadlineError where it has come."""
        if self._end is None:
            return None
        left = self._end - self._clock()
        if left <= 0:
            raise self.passed()
        return left

    def admits(self, seconds: float) -> bool:
        """Whether there is time left after so many seconds."""
        return self._end is None or self._clock() + seconds < self._end

    def passed(self) -> DeadlineError:
        """What is raised at the end."""
        return DeadlineError(f"no answer within {self._seconds} s")


@dataclass(frozen=True)
class Policy:
    """How calls are made, unless one says otherwise: `timeout` in seconds for all tries of one, None for no end."""

    timeout: float | None = 60.0
    retries: int = 2
    idempotency: bool = True
    surroundings: Surroundings = field(default_factory=Surroundings)

    def deadline(self, seconds: float | None) -> Deadline:
        """The end of a call that begins now."""
        return Deadline(seconds, self.surroundings.clock)


class Tries:
    """The tries of one call."""

    def __init__(self, policy: Policy, deadline: Deadline, *, may_repeat: bool) -> None:
        self._left = policy.retries if may_repeat else 0
        self._wait = _FIRST_WAIT
        self._chance = policy.surroundings.chance
        self._deadline = deadline
        self._deaths = 0

    def wait_after(self, error: GradserveError) -> float:
        """Seconds to wait before the next try. Raises the error, where that was the last."""
        wait = min(self._wait, _LONGEST_WAIT) * (0.5 + self._chance() / 2)
        if isinstance(error, Refusal):
            wait = max(wait, error.retry_after or 0)
            self._deaths += error.code == "worker_died"
        if not (self._left and self._deaths < 2 and is_passing(error) and self._deadline.admits(wait)):
            raise error
        self._left -= 1
        self._wait *= 2
        return wait


def is_passing(error: GradserveError) -> bool:
    """Whether the same request may be answered later on."""
    if not isinstance(error, Refusal):
        return isinstance(error, ConnectionFailed)
    return error.status in _PASSING or (error.code == "conflict" and error.retry_after is not None)
