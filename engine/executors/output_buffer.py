"""Memory of large results. Most callers drop a result before they ask for the next one; then it serves again."""

from __future__ import annotations

import sys
from collections.abc import Callable

from engine.executors.interpreter import Buffer

_NEVER = -1


class OutputBuffer:
    """A buffer whose arrays go to callers, and which is new for each run unless nobody holds any of them.

    NumPy makes every array on some memory refer to the object that owns it, so that this one's references tell
    whether there are arrays beside the prepared plan's own. Who has none cannot get one: the count never rises from
    nowhere.
    """

    def __init__(self, nbytes: int, allocate: Callable[[int], Buffer]) -> None:
        self._nbytes = nbytes
        self._allocate = allocate
        self._own = _NEVER
        self.buffer: Buffer = None

    def renew(self) -> bool:
        """Before a run: take new memory where somebody holds the old, or there is none. Whether it is new."""
        if self.buffer is not None and sys.getrefcount(self.buffer.base) == self._own:
            return False
        self.buffer, self._own = self._allocate(self._nbytes), _NEVER
        return True

    def count(self) -> None:
        """After a run, before a result is handed out: what refers to the memory now is the prepared plan's own."""
        self._own = sys.getrefcount(self.buffer.base)
