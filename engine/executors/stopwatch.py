"""Time that each step of a run takes: the order of compiling is told from it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any


class Stopwatch:
    """Observer of a run (`Executor.interpret`) that notes the seconds that each step took; four bytes each.

    They are those of this thread on a processor: what others do meanwhile counts for nothing.
    """

    __slots__ = ("_before", "_clock", "seconds")

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        #: in the order of the steps
        self.seconds = array("f")
        self._before = clock()

    def __call__(self, *_: Any) -> None:
        """A step has been made."""
        now = self._clock()
        self.seconds.append(now - self._before)
        self._before = now
