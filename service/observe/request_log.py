"""Request log: one line per request, with ids, sizes and times, but no data, query or headers."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final, Literal, NamedTuple

from engine import printable
from service.core.logs import json_line


class AnsweredRequest(NamedTuple):
    """Ids, sizes and times of an answered request, without data, query or headers.

    `caller` is the name of its key, `route` the path template, `call` and `graph_id` what it computed; each is empty if
    there is none. `received` and `sent` are the bytes of the body and of the response, and `seconds` is the time from
    the end of the request's head to the end of the response.
    """

    request_id: str
    caller: str
    method: str
    path: str
    route: str
    call: str
    graph_id: str
    status: int
    received: int
    sent: int
    seconds: float


#: seconds between two writes: lines are batched, so that a busy server is rarely interrupted
WRITE_INTERVAL: Final = 0.05
#: maximum number of lines that wait for a slow reader; further lines are dropped and counted
MAX_WAITING_LINES: Final = 10_000


class Lines:
    """Batching writer of lines in its own thread: a slow reader does not slow down the server.

    `write` gets text that ends with a newline; `form` formats a message about the log itself as a line.
    """

    def __init__(self, write: Callable[[str], object], form: Callable[[str], str] = str) -> None:
        self._write = write
        self._form = form
        self._waiting: list[str] = []
        self._dropped = 0
        self._lock = Lock()
        self._available = Event()
        self._closed = Event()
        self._thread = Thread(target=self._write_lines, name="request log", daemon=True)
        self._thread.start()

    def add(self, line: str) -> None:
        """Queue a line without a newline. Never blocks."""
        # Read without the lock: the limit need not be exact.
        if len(self._waiting) >= MAX_WAITING_LINES:
            self._dropped += 1
            return
        with self._lock:
            self._waiting.append(line)
        if not self._available.is_set():
            self._available.set()

    def close(self, timeout: float) -> None:
        """Write the queued lines within `timeout` seconds."""
        self._closed.set()
        self._available.set()
        self._thread.join(timeout)

    def _write_lines(self) -> None:
        while not self._closed.is_set() or self._waiting:
            self._available.wait()
            self._available.clear()
            with self._lock:
                lines, self._waiting = self._waiting, []
            if self._dropped:
                lines.append(
                    self._form(f"{self._dropped} lines were dropped, because the log was not read fast enough")
                )
                self._dropped = 0
            if lines and not self._write_text("\n".join([*lines, ""])):
                return
            self._closed.wait(WRITE_INTERVAL)

    def _write_text(self, text: str) -> bool:
        """Write the text. Return False if the reader is gone for good."""
        try:
            self._write(text)
        except (OSError, ValueError):  # the other end is closed, or the stream is
            self._closed.set()
            self._waiting.clear()
            return False
        return True


_NAME: Final = "gradserve.requests"


class RequestLog:
    """Writer of a line per request, in the format of the rest of the log."""

    def __init__(self, lines: Lines, form: Literal["text", "json"] = "text") -> None:
        self._lines = lines
        self._write_text = self._text if form == "text" else _json
        self._second = 0
        self._stamp = ""

    def add(self, answered: AnsweredRequest, trace_id: str = "") -> None:
        """Write the line of a request, with the id of its trace if it has one."""
        self._lines.add(self._write_text(answered, trace_id))

    def _text(self, answered: AnsweredRequest, trace_id: str) -> str:
        caller = f" caller={printable(answered.caller)}" if answered.caller else ""
        trace = f" trace={trace_id}" if trace_id else ""
        return (
            f"{self._now()} INFO {_NAME}: id={answered.request_id}{caller} method={printable(answered.method)}"
            f" path={printable(answered.path)} status={answered.status} ms={1000 * answered.seconds:.2f}"
            f" received={answered.received} sent={answered.sent}{trace}"
        )

    def _now(self) -> str:
        """Return the time in the format of `logging`. The seconds are formatted only once a second."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._stamp},{int(1000 * (now - second)):03d}"


def _json(answered: AnsweredRequest, trace_id: str) -> str:
    return json_line(
        time.time(), "INFO", _NAME,
        request_id=answered.request_id,
        caller=answered.caller,
        method=printable(answered.method),
        path=printable(answered.path),
        status=answered.status,
        ms=round(1000 * answered.seconds, 3),
        received=answered.received,
        sent=answered.sent,
        **({"trace_id": trace_id} if trace_id else {}),
    )  # fmt: skip


def log_message_formatter(form: Literal["text", "json"]) -> Callable[[str], str]:
    """Return the function that formats a message about the log itself as a line in this format."""
    return str if form == "text" else lambda text: json_line(time.time(), "WARNING", _NAME, message=text)
