"""The application under another ASGI server, or mounted under a prefix in another application."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.core.errors import Refusal, with_prefixed_links
from service.core.keys.caller import ANONYMOUS
from service.core.prefix import path_within, url_prefix
from service.core.settings import Settings
from service.web.head import ComputeCall, compute_call_of
from service.web.middleware import ReportRewriter
from service.web.observer import Finished, RequestObserver, unobserved
from service.web.routing import route_of


class DisconnectWatcher:
    """Middleware that cancels the application when the client disconnects after sending its request.

    Own connections do that themselves. Another server reports a disconnect only to a caller of `receive`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client = _Client(receive, send, asyncio.current_task())
        watching = asyncio.ensure_future(client.watch())
        try:
            await self._app(scope, client.receive, client.send)
        finally:
            watching.cancel()
            client.restore_task()


class _Client:
    """The client's `receive` and `send`, and the task that answers."""

    def __init__(self, receive: Receive, send: Send, task: asyncio.Task[object] | None) -> None:
        self._receive, self._send = receive, send
        self._task = task
        self._request_received = asyncio.Event()
        self._disconnected = False

    async def receive(self) -> Message:
        message = await self._receive()
        if not message.get("more_body", False):
            self._request_received.set()
        return message

    async def send(self, message: Message) -> None:
        if not self._disconnected:
            await self._send(message)

    async def watch(self) -> None:
        """Cancel the task when the client disconnects."""
        await self._request_received.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._disconnected = True
        if self._task is not None:
            self._task.cancel()

    def restore_task(self) -> None:
        """Uncancel the task, since the application has handled the cancellation."""
        if self._disconnected and self._task is not None:
            self._task.uncancel()


class PrefixedLinks:
    """Middleware that puts the prefix before paths in responses: in `Location`, and in the types of reports."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        prefix = url_prefix(scope)
        if not prefix:
            await self._app(scope, receive, send)
            return

        def with_prefix(start: Message, report_body: bytes) -> bytes:
            body = with_prefixed_links(report_body, prefix)
            MutableHeaders(scope=start)["content-length"] = str(len(body))
            return body

        rewriter = ReportRewriter(send, with_prefix)

        async def send_prefixed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("location", "").startswith("/"):
                    headers["location"] = f"{prefix}{headers['location']}"
            await rewriter(message)

        await self._app(scope, receive, send_prefixed)


class _HostedHead(NamedTuple):
    """Head of a request, as observers read it."""

    method: str
    path: str
    fields: tuple[tuple[bytes, bytes], ...]
    call: ComputeCall | None = None


class ObserverMiddleware:
    """Middleware that calls an observer for each answered request."""

    def __init__(self, app: ASGIApp, settings: Settings, observe: RequestObserver) -> None:
        self._app = app
        self._max_ms = settings.timeout_ms
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        arrived = time.monotonic()
        head = _HostedHead(scope["method"], path_within(scope), tuple(scope["headers"]))
        exchange = _CountedExchange(receive, send)
        await self._app(scope, exchange.receive, exchange.send)
        if exchange.complete and "request_id" in scope.get("state", {}):  # paths between servers have none
            head = head._replace(call=self._compute_call(head, scope))
            self._observe(exchange.finished(head, scope, time.monotonic() - arrived))

    def _compute_call(self, head: _HostedHead, scope: Scope) -> ComputeCall | None:
        """Return the computing call of the request, None if it is not one or its head has an error."""
        media = scope["state"].get("media")
        if head.method == "POST" and media is not None:
            with suppress(Refusal):
                return compute_call_of(head.path, scope["query_string"], media, self._max_ms)
        return None


class _CountedExchange:
    """`receive` and `send` of one request, with counts of bytes."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._received = self._sent = self._status = 0
        self.complete = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.start":
            self._status = message["status"]
        else:
            self._sent += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)

    def finished(self, head: _HostedHead, scope: Scope, seconds: float) -> Finished:
        state = scope["state"]
        caller = state.get("caller", ANONYMOUS).name
        sent = 0 if head.method == "HEAD" else self._sent
        return Finished(
            state["request_id"], head, self._status, self._received, sent, seconds, state.get("reply"),
            route_of(scope), caller,
        )  # fmt: skip


class Hosted:
    """The application with the features of own connections, except limits on slow clients."""

    def __init__(self, app: ASGIApp, settings: Settings, observe: RequestObserver = unobserved) -> None:
        self._app = app
        self._observed = ObserverMiddleware(DisconnectWatcher(PrefixedLinks(app)), settings, observe)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. The host's state of it is dropped: callers are identified by our keys alone."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "state": {}, "root_path": scope.get("root_path", "").rstrip("/")}
        await self._observed(scope, receive, send)
