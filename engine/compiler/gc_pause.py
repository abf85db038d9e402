"""Pause Python's garbage collector while a plan is made: every node is kept, so that it would find nothing.

Planning makes objects by the ten thousand. The collector would go through all of them, and through all that the
process holds besides, several times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

#: how long a pause can be joined: threads that plan one after the other must not put the collector off for ever
SECONDS_OPEN: Final = 1.0


class Pause:
    """A pause of the collector that several threads may be in. The last one to leave ends it.

    The collector is left as the first one found it. A thread that comes after SECONDS_OPEN stays out of the pause, and
    plans with the collector as it is.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._begun = 0.0
        self._was_on = False

    def enter(self) -> bool:
        """Enter the pause; return whether the caller is in it, and has to leave it."""
        with self._lock:
            now = time.perf_counter()
            if not self._inside:
                self._begun, self._was_on = now, gc.isenabled()
                gc.disable()
            elif now - self._begun > SECONDS_OPEN:
                return False
            self._inside += 1
            return True

    def leave(self) -> None:
        """Leave the pause; the last one ends it."""
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_on:
                gc.enable()


_pause: Final = Pause()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Prevent automatic collections inside the `with`, in all threads."""
    entered = _pause.enter()
    try:
        yield
    finally:
        if entered:
            _pause.leave()
