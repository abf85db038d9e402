"""Lines to a stream, written by a thread of their own: a slow reader does not slow the server."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final

#: seconds between two writes: what comes in between is written at once, and a busy server is interrupted rarely
PAUSE: Final = 0.05
#: lines that wait for a slow reader, at most; what comes then is dropped, and counted
MOST_LINES: Final = 10_000


class Lines:
    """Writer of lines in their order, many at once. `write` gets text that ends with a line.

    `form` makes a line of what is to be said of the log itself.
    """

    def __init__(self, write: Callable[[str], object], form: Callable[[str], str] = str) -> None:
        self._write = write
        self._form = form
        self._waiting: list[str] = []
        self._dropped = 0
        self._lock = Lock()
        self._some = Event()
        self._ended = Event()
        self._thread = Thread(target=self._write_lines, name="request log", daemon=True)
        self._thread.start()

    def add(self, line: str) -> None:
        """Hand in a line, without its end. Never waits."""
        if len(self._waiting) >= MOST_LINES:
            self._dropped += 1
            return
        with self._lock:
            self._waiting.append(line)
        if not self._some.is_set():
            self._some.set()

    def close(self, timeout: float) -> None:
        """Write what waits, for so many seconds at most."""
        self._ended.set()
        self._some.set()
        self._thread.join(timeout)

    def _write_lines(self) -> None:
        while not self._ended.is_set() or self._waiting:
            self._some.wait()
            self._some.clear()
            with self._lock:
                lines, self._waiting = self._waiting, []
            if self._dropped:
                lines.append(self._form(f"{self._dropped} lines were dropped: nobody read them"))
                self._dropped = 0
            if lines and not self._written("\n".join([*lines, ""])):
                return
            self._ended.wait(PAUSE)

    def _written(self, text: str) -> bool:
        """False where nobody will ever read."""
        try:
            self._write(text)
        except (OSError, ValueError):  # the other end is closed, or the stream is
            self._ended.set()
            self._waiting.clear()
            return False
        return True
