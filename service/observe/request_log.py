"""Request log: a line for each request. It has ids, sizes and times; no data, no query, no header."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Literal

from engine import printable
from service.logs import json_line
from service.observe.answered import Answered
from service.observe.lines import Lines

_NAME: Final = "gradserve.requests"


class RequestLog:
    """Writer of a line for each request, in the form of the other lines of the log."""

    def __init__(self, lines: Lines, form: Literal["text", "json"] = "text") -> None:
        self._lines = lines
        self._written = self._text if form == "text" else _json
        self._second = 0
        self._stamp = ""

    def add(self, answered: Answered, trace_id: str = "") -> None:
        """One request, and the trace that it is a part of, if any."""
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
        """The time as `logging` writes it; what changes once a second is made once a second."""
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
    """What makes a line, in this form, of what is to be said of the log itself."""
    return str if form == "text" else lambda text: json_line(time.time(), "WARNING", _NAME, message=text)
