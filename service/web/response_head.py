"""The line and headers of a response, as bytes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus
from itertools import count
from typing import Final

from service.workers.task import Reply

#: of a request's id: the client's own where it is sane, else a new one
HEADER: Final = "X-Request-Id"
_SANE: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")
#: tells processes apart, and those that were started before
_PREFIX: Final = secrets.token_hex(12)
_numbers: Final = count()


def new_id() -> str:
    """Return an id that no other request has."""
    return f"{_PREFIX}{next(_numbers):08x}"


def sane(stated: str) -> str | None:
    """Return the client's id for a request, where it can stand in a header, a report and a log."""
    return stated if _SANE.fullmatch(stated) else None


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = b"connection: close\r\n"
_ID: Final = HEADER.lower().encode()
#: a browser is to take no answer for a page or a script, whatever its bytes look like
NO_SNIFFING: Final = ("x-content-type-options", "nosniff")
_NO_SNIFFING: Final = (NO_SNIFFING[0].encode(), NO_SNIFFING[1].encode())
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\ndate: ".encode() for status in HTTPStatus}


class Dated:
    """Writer of heads with the date, which is made once a second at most."""

    def __init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        """Look at the clock."""
        date = formatdate(usegmt=True).encode()
        self._begun = {status: line + date + b"\r\n" for status, line in _LINES.items()}
        self._ok = b"".join((
            self._begun[200], b"content-length: %d\r\ncontent-type: %b\r\n", _ID, b": %b\r\n",
            b"%b: %b\r\n" % _NO_SNIFFING, b"%b\r\n",
        ))  # fmt: skip

    def of(self, status: int, fields: Iterable[tuple[bytes, bytes]], *, closes: bool) -> bytes:
        """Return the head with these fields."""
        stated = b"".join([b"%b: %b\r\n" % field for field in fields])
        begun = self._begun.get(status) or b"HTTP/1.1 %d \r\n" % status
        return b"%b%b%b\r\n" % (begun, stated, CLOSE if closes else b"")

    def of_reply(self, reply: Reply, length: int, request_id: str, *, closes: bool) -> bytes:
        """Write the head of a body of this length, with the same fields in the same order as through the other door."""
        ending = CLOSE if closes else b""
        kind, named = reply.media_type.encode(), request_id.encode()
        if reply.status == 200 and not reply.headers:
            return self._ok % (length, kind, named, ending)
        fields = [(name.lower().encode(), value.encode()) for name, value in reply.headers]
        fields += [(b"content-length", b"%d" % length), (b"content-type", kind), (_ID, named), _NO_SNIFFING]
        return self.of(reply.status, fields, closes=closes)
