"""Incidents: workers that a signal ended, and the plans that run without kernels because of it.

They are kept in the cache folder, where an operator finds them after a restart. What is read there is data: what is not
exactly as it was written is ignored, and a new version of gradserve, whose kernels are others, begins anew.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import signal
import stat
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from engine.runtime.crash_record import LastWords
from service.core.installed import VERSIONS

#: incidents that are kept, and plans that run without kernels
MOST_KEPT: Final = 100
#: workers that a plan may end before it runs without kernels
_FORGIVEN: Final = 2
#: bytes of the file, at most; what is larger was not written here
_MOST_BYTES: Final = 1 << 18
#: signals that say nothing of a plan: somebody else has sent them, or the system was out of memory
FROM_OUTSIDE: Final = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGSTOP", "SIGQUIT"})
_DIGEST: Final = re.compile(r"(?:[0-9a-f]{64})?")
_SIGNAL: Final = re.compile(r"SIG[A-Z0-9+]{1,12}|signal [0-9]{1,3}")
_PLACE: Final = re.compile(r"[ -~]{0,128}")
#: the file of a cache folder
_FILE: Final = "incidents.json"

_logger = logging.getLogger("gradserve.workers")


class Incident(NamedTuple):
    """Death of a worker: when (Unix seconds), by which signal, and at what: the plan's digest and nodes, if known."""

    at: float
    signal: str
    plan: str
    place: str

    def __str__(self) -> str:
        if not self.plan:
            return f"{self.signal}, at no plan"
        return f"{self.signal}, at plan {self.plan[:16]}…{f', {self.place}' if self.place else ''}"


class History(NamedTuple):
    """The last incidents, the last one last, and the digests of the plans that run without kernels."""

    incidents: tuple[Incident, ...] = ()
    condemned: tuple[str, ...] = ()


class Incidents:
    """Count of them, which writes them down, and says of which plans there were too many."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` is made with the first one; without it, they are kept in memory."""
        self._folder = folder
        self._known = incidents_in(folder)
        #: since the start, by signal
        self.counts: Counter[str] = Counter()

    @property
    def condemned(self) -> tuple[str, ...]:
        """The digests of the plans that run without kernels, hexadecimal."""
        return self._known.condemned

    def note(self, pid: int, number: int, said: LastWords) -> str | None:
        """Note that a signal ended a worker, and return the digest of a plan that is to run without kernels, if any."""
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        found = Incident(time.time(), name, said.running or said.compiling, said.place if said.running else "")
        self.counts[found.signal] += 1
        earlier = self._known.incidents
        killed = sum(each.plan == found.plan and each.signal not in FROM_OUTSIDE for each in (*earlier, found))
        is_new = killed >= _FORGIVEN and found.plan not in ("", *self.condemned)
        condemned = (*self.condemned, found.plan) if is_new else self.condemned
        self._known = History((*earlier, found)[-MOST_KEPT:], condemned[-MOST_KEPT:])
        place = f"plan {found.plan}{f': {found.place}' if found.place else ''}" if found.plan else "no plan"
        more = "; it has ended two workers now, and runs without kernels from now on" if is_new else ""
        _logger.error("worker %d was ended by %s, at %s%s", pid, found.signal, place, more)
        if self._folder is not None:
            try:
                _replace(self._folder, json.dumps({"version": VERSIONS["gradserve"], **self._known._asdict()}))
            except OSError as error:
                _logger.warning("incidents are kept in memory alone, not in %s: %s", self._folder, error.strerror)
        return found.plan if is_new else None


def incidents_in(folder: Path | None) -> History:
    """Read the incidents of a cache folder: none of another version, and none that are not as they were written."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        kept = json.loads(_content(folder / _FILE)) if folder else {}
        if kept.get("version") == VERSIONS["gradserve"]:
            incidents = tuple(_incident(*each) for each in kept["incidents"][-MOST_KEPT:])
            condemned = tuple(_matching(_DIGEST, digest) for digest in kept["condemned"][-MOST_KEPT:])
            return History(incidents, condemned) if all(condemned) else History()
    return History()


def _incident(at: object, signal: object, plan: object, place: object) -> Incident:
    if not isinstance(at, float):
        raise TypeError
    return Incident(at, _matching(_SIGNAL, signal), _matching(_DIGEST, plan), _matching(_PLACE, place))


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError
    return value


def _content(file: Path) -> bytes:
    """Read a file, without following a link or waiting for a pipe. Raises OSError."""
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return b"{}"
        return stream.read(_MOST_BYTES)


def _replace(folder: Path, text: str) -> None:
    """Write beside and rename, so that readers meet all of it or what was there before. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f"{_FILE}.{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as stream:
            stream.write(text)
        part.rename(folder / _FILE)
    except OSError:
        part.unlink(missing_ok=True)
        raise
