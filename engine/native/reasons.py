"""Reasons for what is done in another way than it might be: one line of the log for each, and no more than a few."""

from __future__ import annotations

import logging
from typing import Final

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
