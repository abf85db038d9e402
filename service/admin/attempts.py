"""Actions that a confined process must not be able to do. As a program, confine this process and list what works."""

from __future__ import annotations

from service.workers.confinement import confine_from_environment

if __name__ == "__main__":
    confine_from_environment()

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final


def _start_programs() -> None:
    with suppress(FileNotFoundError):  # raised only if the process may start programs
        os.execv("/nonexistent/gradserve", ["gradserve"])  # noqa: S606 - there is none


#: attempts by the name of the action in a diagnosis
ATTEMPTS: Final[Mapping[str, Callable[[], object]]] = {
    "open files": lambda: next(Path("/").iterdir(), None),
    "create sockets": lambda: socket.socket().close(),
    "start programs": _start_programs,
    "signal the server": lambda: os.kill(os.getppid(), 0),
}


def possible() -> list[str]:
    """Return the names of the attempts that succeed in this process."""
    names = []
    for name, attempt in ATTEMPTS.items():
        with suppress(OSError):
            attempt()
            names.append(name)
    return names


if __name__ == "__main__":
    json.dump(possible(), sys.stdout)
