"""In front of the body: a request is refused by its head where that suffices, else its body is counted as it comes.

Where the connection has not asked who makes the request, that is asked here.

How long a body may take is the business of whoever holds the connection.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Refusal
from service.keys.credential import credential_of
from service.keys.gate import Access, Gate
from service.keys.keyholder import Keyholder
from service.prefix import path_within
from service.settings import Settings
from service.web.access import scope_of
from service.web.head import media_of, most_bytes, too_large, too_long
from service.web.responses import report


class Guard:
    """Check of heads, and count of bodies."""

    def __init__(self, app: ASGIApp, settings: Settings, gate: Gate) -> None:
        self._app = app
        self._settings = settings
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_size(scope, self._settings.max_header_bytes)
            holder = self._entered(scope)
        except Refusal as refusal:
            await report(Request(scope), refusal)(scope, receive, send)
            return
        try:
            await self._served(scope, receive, send)
        finally:
            if holder is not None:
                holder.leave()

    def _entered(self, scope: Scope) -> Keyholder | None:
        """Who is to be told when the request is over. Raises Refusal: they may not make it."""
        if "caller" in scope["state"]:
            return None
        needed = scope_of(scope["method"], scope["state"]["route_path"], metrics=self._settings.metrics)
        holder = self._gate.enter(Access(needed, credential_of(scope["headers"])))
        scope["state"]["caller"] = holder.caller
        return holder

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            most = self._most(scope)
        except Refusal as refusal:
            await report(Request(scope), refusal)(scope, receive, send)
        else:
            await self._app(scope, counting(receive, most), send)

    def _most(self, scope: Scope) -> int:
        """The bytes that the body may have. Raises Refusal."""
        headers = Headers(scope=scope)
        media = scope["state"]["media"] = media_of(scope["method"], path_within(scope), headers)
        most, announced = most_bytes(media, self._settings), headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise too_long(most, f"{announced} bytes")
        return most


def counting(receive: Receive, most: int) -> Receive:
    """`receive`, which raises Refusal (body_too_large) once there was more."""
    count = 0

    async def receive_counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > most:
            raise too_long(most, "more")
        return message

    return receive_counted


def _check_size(scope: Scope, limit: int) -> None:
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if size + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > limit:
        raise too_large(limit)
