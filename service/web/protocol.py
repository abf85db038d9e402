"""HTTP/1.1 on the wire: uvicorn's h11 protocol, whose own refusals become problem reports.

h11 and not httptools: that one drops the body of a POST that offers an upgrade to HTTP/2 (`Upgrade: h2c`), as Java's
HTTP client does by default.
"""

from __future__ import annotations

import sys
import uuid
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.errors import Refusal
from service.web.middleware.envelope import HEADER
from service.web.middleware.head import too_large
from service.wire.media import PROBLEM

_HEAD: Final = 16 << 10  # bytes of a head, where uvicorn is not told


class Passing(h11.Connection):
    """h11, handing on the pieces of a body as they are: its own `send` would copy each of them."""

    def send(self, event: h11.Event) -> bytes | None:  # type: ignore[override] # h11 writes it as overloads
        """What to write for an event."""
        parts = self.send_with_data_passthrough(event)
        if parts is None:
            return None
        return parts[0] if len(parts) == 1 else b"".join(parts)


class ProblemProtocol(H11Protocol):
    """One connection."""

    def __init__(self, config: uvicorn.Config, *more: Any, **named: Any) -> None:
        super().__init__(config, *more, **named)
        self.conn = Passing(h11.SERVER, config.h11_max_incomplete_event_size or _HEAD)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP, or a head that does not end; called while h11's error is handled."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refusal = self._refusal(sys.exc_info()[1])
            for event in _events(refusal, uuid.uuid4().hex):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _refusal(self, error: BaseException | None) -> Refusal:
        if isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431:
            return too_large(self.config.h11_max_incomplete_event_size or 0)
        return Refusal("bad_request_framing", "the request is not well-formed HTTP/1.1")

    def _should_upgrade(self) -> bool:
        return False  # every offer to upgrade is declined by answering in HTTP/1.1


def _events(refusal: Refusal, request_id: str) -> list[h11.Event]:
    body = refusal.body(request_id)
    headers = [
        ("content-type", PROBLEM),
        ("content-length", str(len(body))),
        ("connection", "close"),
        (HEADER.lower(), request_id),
    ]
    return [
        h11.Response(status_code=refusal.status, headers=headers),
        h11.Data(data=body),
        h11.EndOfMessage(),
    ]
