"""Every request that another server brings is told of, as those of our own connections are."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Refusal
from service.keys.caller import ANYONE
from service.prefix import path_within
from service.settings import Settings
from service.web.head import Order, order_of
from service.web.observer import Finished, RequestObserver
from service.web.routing import route_of


class _HostedHead(NamedTuple):
    """The head of a request, as far as observers ask."""

    method: str
    path: str
    fields: tuple[tuple[bytes, bytes], ...]
    order: Order | None = None


class Observing:
    """Middleware that tells an observer of each request that was answered."""

    def __init__(self, app: ASGIApp, settings: Settings, observe: RequestObserver) -> None:
        self._app = app
        self._most_ms = settings.timeout_ms
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived = time.monotonic()
        asked = _HostedHead(scope["method"], path_within(scope), tuple(scope["headers"]))
        counted = _Counted(receive, send)
        await self._app(scope, counted.receive, counted.send)
        if counted.over:
            asked = asked._replace(order=self._order(asked, scope))
            self._observe(counted.finished(asked, scope, time.monotonic() - arrived))

    def _order(self, asked: _HostedHead, scope: Scope) -> Order | None:
        """The computing call that the request was, where nothing was wrong with its head."""
        media = scope["state"].get("media")
        if asked.method == "POST" and media is not None:
            with suppress(Refusal):
                return order_of(asked.path, scope["query_string"], media, self._most_ms)
        return None


class _Counted:
    """`receive` and `send`, which count."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._received = self._sent = self._status = 0
        self.over = False

    async def receive(self) -> Message:
        """The next part of the request."""
        message = await self._receive()
        self._received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        """The next part of the answer."""
        await self._send(message)
        if message["type"] == "http.response.start":
            self._status = message["status"]
        else:
            self._sent += len(message.get("body", b""))
            self.over = not message.get("more_body", False)

    def finished(self, asked: _HostedHead, scope: Scope, seconds: float) -> Finished:
        """The request and its end."""
        known = scope["state"]
        caller = known.get("caller", ANYONE).name
        sent = 0 if asked.method == "HEAD" else self._sent
        return Finished(
            known["request_id"], asked, self._status, self._received, sent, seconds, known.get("reply"),
            route_of(scope), caller,
        )  # fmt: skip
