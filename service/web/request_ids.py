"""A request's id: the client's own where it is sane, else a new one."""

from __future__ import annotations

import re
import secrets
from itertools import count
from typing import Final

HEADER: Final = "X-Request-Id"
_SANE: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")
#: tells processes apart, and those that were started before
_PREFIX: Final = secrets.token_hex(12)
_numbers: Final = count()


def new_id() -> str:
    """An id that no other request has."""
    return f"{_PREFIX}{next(_numbers):08x}"


def sane(stated: str) -> str | None:
    """The client's id for a request, where it can stand in a header, a report and a log."""
    return stated if _SANE.fullmatch(stated) else None
