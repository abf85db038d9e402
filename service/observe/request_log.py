"""Request log: a line for each request. It has ids, sizes and times; no data, no query, no header."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final, Literal, NamedTuple

from engine import printable
from service.core.logs import json_line


class Answered(NamedTuple):
    """Ids, sizes and times of a request: no data, no query, no header.

    `caller` is the name of its key, `route` its path with names in place of what stands there, `call` and `graph_id`
    what it computed; empty where there is none. `received` and `sent` are bytes of its body and of the answer's, and
    `seconds` is from the end of its head to the end of the answer.
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


#: seconds between two writes: what comes in between is written at once, and a busy server is interrupted rarely
PAUSE: Final = 0.05
#: lines that wait for a slow reader, at most; what comes then is dropped, and counted
MOST_LINES: Final = 10_000


class Lines:
    """Writer of lines, many at once, in a thread of its own: a slow reader does not slow the server.

    `write` gets text that ends with a line; `form` makes a line of what is to be said of the log itself.
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


_NAME: Final = "gradserve.requests"


class RequestLog:
    """Writer of a line for each request, in the form of the other lines of the log."""

    def __init__(self, lines: Lines, form: Literal["text", "json"] = "text") -> None:
        self._lines = lines
        self._written = self._text if form == "text" else _json
        self._second = 0
        self._stamp = ""

    def add(self, answered: Answered, trace_id: str = "") -> None:
        """Write the line of a request, and of the trace that it is a part of, if any."""
        self._lines.add(self._written(answered, trace_id))

    def _text(self, answered: Answered, trace_id: str) -> str:
        caller = f" caller={printable(answered.caller)}" if answered.caller else ""
        trace = f" trace={trace_id}" if trace_id else ""
        return (
            f"{self._now()} INFO {_NAME}: id={answered.request_id}{caller} method={printable(answered.method)}"
            f" path={printable(answered.path)} status={answered.status} ms={1000 * answered.seconds:.2f}"
            f" received={answered.received} sent={answered.sent}{trace}"
        )

    def _now(self) -> str:
        """Return the time as `logging` writes it; what changes once a second is made once a second."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._stamp},{int(1000 * (now - second)):03d}"


def _json(answered: Answered, trace_id: str) -> str:
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


def remark(form: Literal["text", "json"]) -> Callable[[str], str]:
    """Return the function that makes a line, in this form, of a remark on the log itself."""
    return str if form == "text" else lambda text: json_line(time.time(), "WARNING", _NAME, message=text)
