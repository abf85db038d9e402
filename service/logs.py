"""The log of the processes of a server: lines on stderr, in one form."""

from __future__ import annotations

import logging
import sys

from service.settings import Settings


def begin_log(settings: Settings) -> None:
    """Write what is logged from now on, from the level on that is set."""
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
