"""Under a prefix, where answers lead: the header `Location`, and the types of reports."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import linked
from service.prefix import prefix_of
from service.wire.media import PROBLEM


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
