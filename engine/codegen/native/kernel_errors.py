"""Kernels that are not there: the error, the keys that are not tried again, and one line of the log for each reason.

This is never a reason to fail, since NumPy computes the same.
"""

from __future__ import annotations

import logging
from threading import Lock
from typing import Final


class KernelUnavailable(Exception):
    """Absence of machine code of a kernel; the message says why: a whole sentence for an operator."""


# What could not be made, by key, and why: it is not tried again, so that a plan runs one way.

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


# Reasons for what is done in another way than it might be: one line of the log for each, and no more than a few.

#: reasons that are remembered as told
MOST_TOLD: Final = 256

_logger = logging.getLogger("gradserve.kernels")


class Reasons:
    """Reasons that have been told so far. `message` has a place for the reason."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._told: set[str] = set()

    def tell(self, reason: str) -> None:
        """One line, unless it was told before, or too many were."""
        if reason not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(reason)
            _logger.warning(self._message, reason)
