"""Diagnosis of one thing, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from service.core.settings import Settings

#: seconds that a process of the doctor's has
TRIAL_SECONDS: Final = 60.0


class Verdict(StrEnum):
    """Severity: a server will not start, or not answer, after a FAIL."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Diagnosis(NamedTuple):
    """One sentence, and one more on what to do, where there is something."""

    level: Verdict
    says: str
    advice: str = ""


#: looks at one thing, for a server of these settings
Check = Callable[[Settings], Diagnosis]


def fine(says: str) -> Diagnosis:
    """Report that nothing is to be done."""
    return Diagnosis(Verdict.OK, says)


def doubtful(says: str, advice: str) -> Diagnosis:
    """Report that it works, but may not for long, or not as well as it could."""
    return Diagnosis(Verdict.WARN, says, advice)


def broken(says: str, advice: str) -> Diagnosis:
    """Report that it does not work."""
    return Diagnosis(Verdict.FAIL, says, advice)
