"""A gradserve server on a free port for as long as a `with` block lasts."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

ANNOUNCEMENT = "gradserve listening on "


@contextmanager
def running_server(*options: str) -> Iterator[str]:
    """Start a server, yield its address, and stop it however the block ends."""
    command = [sys.executable, "-m", "service", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    try:
        yield _address(process)
    finally:
        _stop(process)


def _address(process: subprocess.Popen[str]) -> str:
    """What the server announces on its first line."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith(ANNOUNCEMENT):
        raise RuntimeError(f"the server did not start: {line.strip() or 'it said nothing'}")
    # Whatever else it prints is read and dropped: a full pipe would make it wait.
    Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
    return line.removeprefix(ANNOUNCEMENT).strip()


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
