"""What was found out about one thing, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from service.settings import Settings


class Level(StrEnum):
    """How bad it is: a server will not start, or not answer, after a FAIL."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One sentence, and one more on what to do, where there is something."""

    level: Level
    says: str
    advice: str = ""


#: looks at one thing, for a server of these settings
Check = Callable[[Settings], Finding]


def fine(says: str) -> Finding:
    """Nothing is to be done."""
    return Finding(Level.OK, says)


def doubtful(says: str, advice: str) -> Finding:
    """It works, and may not for long, or not as well as it could."""
    return Finding(Level.WARN, says, advice)


def broken(says: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(Level.FAIL, says, advice)
