"""Diagnosis of one check, with advice."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from service.core.settings import Settings

#: timeout of a process that the doctor starts, in seconds
TRIAL_SECONDS: Final = 60.0


class Verdict(StrEnum):
    """Severity of a diagnosis. After a FAIL, a server would not start or not answer."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Diagnosis(NamedTuple):
    """Level, one sentence, and one sentence of advice if something should be done."""

    level: Verdict
    says: str
    advice: str = ""


#: check of one aspect, for a server with these settings
Check = Callable[[Settings], Diagnosis]


def fine(says: str) -> Diagnosis:
    """Return a diagnosis that needs no action."""
    return Diagnosis(Verdict.OK, says)


def doubtful(says: str, advice: str) -> Diagnosis:
    """Return a diagnosis of something that works, but perhaps not for long, or not as well as it could."""
    return Diagnosis(Verdict.WARN, says, advice)


def broken(says: str, advice: str) -> Diagnosis:
    """Return a diagnosis of something that does not work."""
    return Diagnosis(Verdict.FAIL, says, advice)
