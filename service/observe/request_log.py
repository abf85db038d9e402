"""A line for each request: who, what, how long, how it ended. Ids and sizes; no data, no query, no header."""

from __future__ import annotations

import time

from engine import printable
from service.observe.lines import Lines


class RequestLog:
    """Writes a line for each request, in the form of the other lines of the log."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._second = 0
        self._stamp = ""

    def add(
        self, request_id: str, method: str, path: str, status: int, received: int, sent: int, seconds: float
    ) -> None:
        """One request; bytes of its body and of the answer's."""
        self._lines.add(
            f"{self._now()} INFO gradserve.requests: id={request_id} method={printable(method)} path={printable(path)}"
            f" status={status} ms={1000 * seconds:.2f} received={received} sent={sent}"
        )

    def _now(self) -> str:
        """The time as `logging` writes it; what changes once a second is made once a second."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return f"{self._stamp},{int(1000 * (now - second)):03d}"
