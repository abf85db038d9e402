"""Incidents: workers that a signal killed, and the plans that run without kernels because of it.

The history is kept in the cache folder, where an operator finds it after a restart. The file is not trusted: content
that is not exactly what would be written is ignored. So is the file of another version, whose kernels were others.
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

#: most incidents that are kept, and most plans that run without kernels
MOST_KEPT: Final = 100
#: number of workers that a plan may kill before it runs without kernels
_FORGIVEN: Final = 2
#: largest file that is read; a larger one was not written here
_MOST_BYTES: Final = 1 << 18
#: signals that say nothing about a plan: somebody sent them, or the system was out of memory
FROM_OUTSIDE: Final = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGSTOP", "SIGQUIT"})
_DIGEST: Final = re.compile(r"(?:[0-9a-f]{64})?")
_SIGNAL: Final = re.compile(r"SIG[A-Z0-9+]{1,12}|signal [0-9]{1,3}")
_PLACE: Final = re.compile(r"[ -~]{0,128}")
#: name of the file in the cache folder
_FILE: Final = "incidents.json"

_logger = logging.getLogger("gradserve.workers")


class Incident(NamedTuple):
    """Death of a worker: time in Unix seconds, signal, and the plan's digest and the nodes that ran, if known."""

    timestamp: float
    signal: str
    plan: str
    place: str

    def __str__(self) -> str:
        if not self.plan:
            return f"{self.signal}, outside of a plan"
        return f"{self.signal}, in plan {self.plan[:16]}…{f', {self.place}' if self.place else ''}"


class History(NamedTuple):
    """Latest incidents in order of time, and the digests of the plans that run without kernels."""

    incidents: tuple[Incident, ...] = ()
    condemned: tuple[str, ...] = ()


class Incidents:
    """Log of incidents, which decides which plans run without kernels."""

    def __init__(self, folder: Path | None) -> None:
        """Read the history in `folder`, which is made with the first incident; without one, keep it in memory."""
        self._folder = folder
        self._known = incidents_in(folder)
        #: number since the start, by signal
        self.counts: Counter[str] = Counter()

    @property
    def condemned(self) -> tuple[str, ...]:
        """Digests of the plans that run without kernels, in hexadecimal."""
        return self._known.condemned

    def note(self, pid: int, number: int, last_words: LastWords) -> str | None:
        """Record that a signal killed a worker; return the digest of the plan if it is condemned now, else None."""
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        incident = Incident(
            time.time(),
            name,
            last_words.running or last_words.compiling,
            last_words.place if last_words.running else "",
        )
        self.counts[incident.signal] += 1
        earlier = self._known.incidents
        # Incidents from before a restart count as well: the same kernels would be loaded again.
        killed = sum(each.plan == incident.plan and each.signal not in FROM_OUTSIDE for each in (*earlier, incident))
        is_new = killed >= _FORGIVEN and incident.plan not in ("", *self.condemned)
        condemned = (*self.condemned, incident.plan) if is_new else self.condemned
        self._known = History((*earlier, incident)[-MOST_KEPT:], condemned[-MOST_KEPT:])
        place = (
            f"in plan {incident.plan}{f': {incident.place}' if incident.place else ''}"
            if incident.plan
            else "outside of a plan"
        )
        more = "; the plan has killed two workers, and runs without kernels from now on" if is_new else ""
        _logger.error("worker %d was killed by %s, %s%s", pid, incident.signal, place, more)
        if self._folder is not None:
            try:
                _replace(self._folder, json.dumps({"version": VERSIONS["gradserve"], **self._known._asdict()}))
            except OSError as error:
                _logger.warning(
                    "cannot write to %s, so incidents are only in memory: %s",
                    self._folder,
                    error.strerror,
                )
        return incident.plan if is_new else None


def incidents_in(folder: Path | None) -> History:
    """Read the history of a cache folder; empty if it is of another version or not as it was written."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        content = json.loads(_content(folder / _FILE)) if folder else {}
        if content.get("version") == VERSIONS["gradserve"]:
            incidents = tuple(_incident(*each) for each in content["incidents"][-MOST_KEPT:])
            condemned = tuple(_matching(_DIGEST, digest) for digest in content["condemned"][-MOST_KEPT:])
            return History(incidents, condemned) if all(condemned) else History()
    return History()


def _incident(timestamp: object, signal: object, plan: object, place: object) -> Incident:
    if not isinstance(timestamp, float):
        raise TypeError
    return Incident(timestamp, _matching(_SIGNAL, signal), _matching(_DIGEST, plan), _matching(_PLACE, place))


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError
    return value


def _content(file: Path) -> bytes:
    """Read a file without following a link or waiting for a pipe. Raises OSError."""
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return b"{}"
        return stream.read(_MOST_BYTES)


def _replace(folder: Path, text: str) -> None:
    """Write a temporary file and rename it, so that readers see the old content or the new. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A random name and O_EXCL: in a folder that others can write to, no planted link is followed.
    part = folder / f"{_FILE}.{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as stream:
            stream.write(text)
        part.rename(folder / _FILE)
    except OSError:
        part.unlink(missing_ok=True)
        raise
