"""Diagnosis of one thing, and the advice on it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from service.core.settings import Settings

#: timeout of a process that the doctor starts, in seconds
TRIAL_SECONDS: Final = 60.0


class Verdict(StrEnum):
    """Severity: a server will not start, or not answer, after a FAIL."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Diagnosis(NamedTuple):
    """Level, one sentence, and one of advice if something should be done."""

    level: Verdict
    says: str
    advice: str = ""


#: checks one thing, for a server with these settings
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
