"""Attempts at what a confined process must not do: made in a process of its own, whose answer is a list of these."""

from __future__ import annotations

from service.workers.confinement import confine_as_told

if __name__ == "__main__":
    confine_as_told()

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final


def _open_files() -> None:
    next(Path("/").iterdir(), None)


def _make_sockets() -> None:
    socket.socket().close()


def _start_programs() -> None:
    with suppress(FileNotFoundError):
        os.execv("/nonexistent/gradserve", ["gradserve"])  # noqa: S606 - there is none, which only who may is told


def _signal_others() -> None:
    os.kill(os.getppid(), 0)


#: by what is said of a worker that can do it
ATTEMPTS: Final[Mapping[str, Callable[[], None]]] = {
    "open files": _open_files,
    "make sockets": _make_sockets,
    "start programs": _start_programs,
    "signal the server": _signal_others,
}


def possible() -> list[str]:
    """Return the attempts that succeed in this process."""
    found = []
    for name, attempt in ATTEMPTS.items():
        with suppress(OSError):
            attempt()
            found.append(name)
    return found


if __name__ == "__main__":
    json.dump(possible(), sys.stdout)
