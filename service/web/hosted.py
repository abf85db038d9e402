"""The application as another server than ours runs it, or another application that has it under a prefix."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.media import PROBLEM
from service.core.errors import Refusal, linked
from service.core.keys.caller import ANYONE
from service.core.prefix import path_within, prefix_of
from service.core.settings import Settings
from service.web.head import Order, order_of
from service.web.observer import Finished, RequestObserver, unobserved
from service.web.routing import route_of

# A client that leaves: nobody needs its answer any more, so the work stops.
#
# A connection of our own tells that by itself. Another server tells it to whoever asks for more of the request.


class Leaving:
    """Middleware that ends the application where the client has left, once it has all of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = _Client(receive, send, asyncio.current_task())
        watching = asyncio.ensure_future(client.watch())
        try:
            await self._app(scope, client.receive, client.send)
        finally:
            watching.cancel()
            client.forget()


class _Client:
    """Client who asked, and the task that answers."""

    def __init__(self, receive: Receive, send: Send, task: asyncio.Task[object] | None) -> None:
        self._receive, self._send = receive, send
        self._task = task
        self._heard = asyncio.Event()
        self._gone = False

    async def receive(self) -> Message:
        """The next part of the request."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._heard.set()
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer, as long as anybody is there."""
        if not self._gone:
            await self._send(message)

    async def watch(self) -> None:
        """End the task when the client leaves."""
        await self._heard.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        if self._task is not None:
            self._task.cancel()

    def forget(self) -> None:
        """The application has dealt with its end: the task goes on as if it had not been cancelled."""
        if self._gone and self._task is not None:
            self._task.uncancel()


# Under a prefix, where answers lead: the header `Location`, and the types of reports.


class PrefixedLinks:
    """Middleware that puts the prefix before what the service, and its workers, know without it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        prefix = prefix_of(scope)
        await self._app(scope, receive, _Prefixed(prefix, send) if prefix else send)


class _Prefixed:
    """`send`, which holds a report back until it is whole."""

    def __init__(self, prefix: str, send: Send) -> None:
        self._prefix = prefix
        self._send = send
        self._start: Message | None = None
        self._report = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._start is None:
            await self._send(message)
        else:
            self._report += message.get("body", b"")
            if not message.get("more_body", False):
                await self._tell(self._start, linked(self._report, self._prefix))

    async def _begin(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        if headers.get("location", "").startswith("/"):
            headers["location"] = f"{self._prefix}{headers['location']}"
        if headers.get("content-type") == PROBLEM:
            self._start = message
        else:
            await self._send(message)

    async def _tell(self, start: Message, report: bytes) -> None:
        MutableHeaders(scope=start)["content-length"] = str(len(report))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": report})


# Every request that another server brings is told of, as those of our own connections are.


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


class Hosted:
    """Application with what a connection of our own does, beside limits on slow clients: who asks, and who leaves."""

    def __init__(self, app: ASGIApp, settings: Settings, observe: RequestObserver = unobserved) -> None:
        self._app = Observing(Leaving(PrefixedLinks(app)), settings, observe)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. What a host has noted of it is the host's: a caller is known by a key of ours alone."""
        if scope["type"] == "http":
            scope = {**scope, "state": {}, "root_path": scope.get("root_path", "").rstrip("/")}
        await self._app(scope, receive, send)
