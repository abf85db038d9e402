"""What could not be made, by key, and why: it is not tried again, so that a plan runs one way."""

from __future__ import annotations

from threading import Lock
from typing import Final

from engine.native.kernel_errors import KernelUnavailable

#: kernels, or plans of libraries, that are remembered: the first of them is forgotten for one more
MOST_REFUSED: Final = 4096


class RefusedKernels:
    """Keys with the reasons why there is nothing of them. Threads may share it."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._lock = Lock()

    def add(self, key: str, reason: str) -> None:
        """It could not be made."""
        with self._lock:
            self._reasons[key] = reason
            if len(self._reasons) > MOST_REFUSED:
                del self._reasons[next(iter(self._reasons))]

    def __contains__(self, key: str) -> bool:
        """Whether it could not be made; not where it was not tried, or that is long ago."""
        return key in self._reasons

    def demand(self, key: str) -> None:
        """Raise KernelUnavailable, with the reason, where it could not be made."""
        reason = self._reasons.get(key)
        if reason is not None:
            raise KernelUnavailable(reason)
