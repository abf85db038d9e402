"""The paths between servers, in front of all others: whoever does not know the secret finds nothing there."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from hmac import compare_digest
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.cluster.peers import Moved
from service.cluster.protocol import (
    ALIVE,
    CALLER_HEADER,
    MISDIRECTED,
    PASSED,
    PROTOCOL,
    PROTOCOL_HEADER,
    SECRET_HEADER,
    body_of_owner,
    caller_of,
    message_of,
    read_message,
    row_of_refusal,
    speaks,
)
from service.cluster.questions import Questions
from service.errors import Refusal, fault
from service.prefix import BETWEEN_SERVERS, path_within
from service.transport.frames import INLINE
from service.web.middleware.guard import counting
from service.web.routing import route_path
from service.web.sending import slices_to_send

_logger = logging.getLogger("gradserve.cluster")

_CONFLICT: Final = 409
_STATED: Final = (PROTOCOL_HEADER.lower().encode(), str(PROTOCOL).encode())


class Between:
    """Application that answers other servers; all else goes to `app`. Requests that were passed on go to `passed`."""

    def __init__(
        self, app: ASGIApp, passed: ASGIApp, routes: Sequence[BaseRoute], questions: Questions, secret: str, most: int
    ) -> None:
        """A question has `most` bytes."""
        self._app, self._passed, self._routes = app, passed, routes
        self._questions, self._secret, self._most = questions, secret.encode(), most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = path_within(scope) if scope["type"] == "http" else ""
        if not path.startswith(BETWEEN_SERVERS) or not self._knows_the_secret(headers := Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif not speaks(stated := headers.get(PROTOCOL_HEADER, "")):
            _logger.error("another server speaks version %r between servers, and this one %d", stated, PROTOCOL)
            await _say(send, _CONFLICT, [b""])
        elif path.startswith(f"{PASSED}/"):
            await self._serve_passed(scope, receive, send, headers)
        elif path == BETWEEN_SERVERS + ALIVE:
            await _say(send, 200, [b""])
        else:
            await self._answer(path.removeprefix(BETWEEN_SERVERS), scope, receive, send)

    def _knows_the_secret(self, headers: Headers) -> bool:
        return compare_digest(headers.get(SECRET_HEADER, "").encode(), self._secret)

    async def _answer(self, what: str, scope: Scope, receive: Receive, send: Send) -> None:
        status = 200
        try:
            said, blobs = read_message(await Request(scope, counting(receive, self._most)).body())
            answer = self._questions.by_name[what]
            parts = message_of(*await answer(said, blobs, time.monotonic() + float(said["left"])))
        except ClientDisconnect:
            return
        except Moved as moved:
            status, parts = MISDIRECTED, [body_of_owner(moved.owner)]
        except Refusal as refusal:
            status, parts = refusal.status, message_of({"refused": row_of_refusal(refusal)})
        except Exception:
            _logger.exception("a question of another server could not be answered: %s", what)
            status, parts = 500, message_of({"refused": row_of_refusal(fault())})
        await _say(send, status, parts)

    async def _serve_passed(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """A request that another server has let in, for this caller."""
        inner: dict[str, Any] = {**scope, "path": path_within(scope).removeprefix(PASSED), "root_path": ""}
        inner["raw_path"] = scope["raw_path"][scope["raw_path"].index(PASSED.encode()) + len(PASSED) :]
        caller = caller_of(headers[CALLER_HEADER])
        inner["state"] = {**scope.get("state", {}), "caller": caller, "prefix": "", "passed": True}
        inner["state"]["route_path"] = route_path(inner, self._routes)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[PROTOCOL_HEADER] = str(PROTOCOL)
            await send(message)

        await self._passed(inner, receive, marked)


async def _say(send: Send, status: int, parts: Sequence[bytes | memoryview]) -> None:
    nbytes = sum(map(len, parts))
    fields = [_STATED, (b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % nbytes)]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    if nbytes <= INLINE:  # at once, or whoever asks is woken up several times
        await send({"type": "http.response.body", "body": b"".join(parts)})
        return
    for part in slices_to_send(parts):
        await send({"type": "http.response.body", "body": bytes(part), "more_body": True})
    await send({"type": "http.response.body", "body": b""})
