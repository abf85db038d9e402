"""Runs of plans on a card in this process: who wants to be alone with the card asks whether there are any."""

from __future__ import annotations

from threading import Condition, Lock
from types import TracebackType


class CardRuns:
    """Runs, each a context that is entered when its launches begin. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ended = Condition(self._lock)
        self._waiting = 0
        self._under_way = 0
        #: how many there were so far
        self.begun = 0

    def __enter__(self) -> None:
        with self._lock:
            self.begun += 1
            self._under_way += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._under_way -= 1
            if self._waiting:
                self._ended.notify_all()

    def wait_for_none(self, seconds: float) -> int | None:
        """As many as were `begun` by when none is under way; None where that took longer than so many seconds."""
        with self._lock:
            self._waiting += 1
            is_alone = self._ended.wait_for(lambda: not self._under_way, seconds)
            self._waiting -= 1
            return self.begun if is_alone else None
