"""Kernels that are not there: the error, the keys that are not tried again, and one line of the log for each reason.

This is never a reason to fail, since NumPy computes the same.
"""

from __future__ import annotations

import logging
from threading import Lock
from typing import Final

#: kernels, or plans of libraries, that are remembered: the first of them is forgotten for one more
MOST_REFUSED: Final = 4096
#: reasons that are remembered as told
MOST_TOLD: Final = 256

_logger = logging.getLogger("gradserve.kernels")


class KernelUnavailable(Exception):
    """Absence of machine code of a kernel; the message says why: a whole sentence for an operator."""


class RefusedKernels:
    """Keys of kernels that could not be made, with the reasons. They are not tried again, so that a plan runs one way.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._lock = Lock()

    def add(self, key: str, reason: str) -> None:
        """Remember a kernel that could not be made."""
        with self._lock:
            self._reasons[key] = reason
            if len(self._reasons) > MOST_REFUSED:
                del self._reasons[next(iter(self._reasons))]

    def __contains__(self, key: str) -> bool:
        """Whether a kernel could not be made; false if it was not tried, or long ago."""
        return key in self._reasons

    def demand(self, key: str) -> None:
        """Raise KernelUnavailable, with the reason, if a kernel could not be made."""
        reason = self._reasons.get(key)
        if reason is not None:
            raise KernelUnavailable(reason)


class Reasons:
    """Reasons that have been logged so far, each in one line. `message` has a place for the reason."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._told: set[str] = set()

    def tell(self, reason: str) -> None:
        """Log a reason, unless it was told before, or too many were."""
        if reason not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(reason)
            _logger.warning(self._message, reason)
