"""Start a gradserve server on a free port for the duration of a `with` block. Its stored state is temporary."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = [sys.executable, "-m", "service", "serve", "--port", "0", "--log-level", "warning", "--state", "memory"]
ANNOUNCEMENT = "gradserve listening on "


@contextmanager
def running_server(*options: str) -> Iterator[str]:
    """Start a server, yield its address, and stop it at the end of the block."""
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            yield _address(process)
        finally:
            _stop(process)


def _address(process: subprocess.Popen[str]) -> str:
    """Return the address in the line that the server prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith(ANNOUNCEMENT):
        raise RuntimeError(f"the server did not start: {line.strip() or 'it said nothing'}")
    return line.removeprefix(ANNOUNCEMENT).strip()


def _stop(process: subprocess.Popen[str]) -> None:
    """Ask the server to stop, and kill it after ten seconds."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
