"""In front of the body: it is refused by its head where that suffices, else counted and timed while it comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Refusal
from service.web.middleware.head import check_head
from service.web.responses import report
from service.wire.media import SAFETENSORS

#: seconds without a byte, and how many times running, after which a client that was refused has stopped sending; where
#: the whole machine stalls, the first passes for server and client alike, and the client may still go on in the second
_SILENCE: Final = 0.5
_SILENCES: Final = 2


@dataclass(frozen=True)
class BodyLimits:
    """What a request may take before it is understood. Bytes, and seconds."""

    max_body_bytes: int
    max_binary_bytes: int
    max_header_bytes: int
    body_timeout: float
    drain_bytes: int


class Guard:
    """Checks heads, and stands between the application and the body."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, send, self._limits)
        try:
            check_head(scope, self._limits.max_header_bytes)
            if scope["state"].get("sent") == SAFETENSORS:
                body.most = self._limits.max_binary_bytes
            body.check_announced()
        except Refusal as refusal:
            await report(Request(scope), refusal)(scope, body.receive, body.send)
        else:
            await self._app(scope, body.receive, body.send)


class _Body:
    """One request's body as the application receives it, and what is done with a body that nobody wants."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: BodyLimits) -> None:
        headers = Headers(scope=scope)
        self._receive, self._send, self._limits = receive, send, limits
        self._announced = headers.get("content-length", "")
        self._waits_for_continue = "expect" in headers
        self._complete = self._announced in ("", "0") and "transfer-encoding" not in headers
        self._count = 0
        self.most = limits.max_body_bytes

    def check_announced(self) -> None:
        """Raise body_too_large when the head says so already."""
        if self._announced.isdecimal() and int(self._announced) > self.most:
            raise self._too_large(f"{self._announced} bytes")

    async def receive(self) -> Message:
        """The next piece. Raises Refusal: body_too_large, request_timeout."""
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(self._limits.body_timeout):
                message = await self._next()
        except TimeoutError:
            seconds = self._limits.body_timeout
            raise Refusal("request_timeout", f"no byte of the body came for {seconds:g} s") from None
        if self._count > self.most:
            raise self._too_large("more")
        return message

    async def send(self, message: Message) -> None:
        """Pass the answer on. When it comes before the body is read, the connection ends with it."""
        if self._complete:
            await self._send(message)
        elif message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Connection"] = "close"
            await self._send(message)
        else:
            await self._send({**message, "more_body": True})
            await self._drain()
            await self._send({"type": "http.response.body", "body": b""})

    async def _next(self) -> Message:
        message = await self._receive()
        self._count += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        return message

    async def _drain(self) -> None:
        """Read on while bytes come: a client that is still writing would see a reset instead of the answer."""
        if self._waits_for_continue:
            return
        most, silences = self._count + self._limits.drain_bytes, 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.body_timeout):
                while not self._complete and self._count < most and silences < _SILENCES:
                    silences = 0 if await self._hears() else silences + 1

    async def _hears(self) -> bool:
        """Whether the next piece comes without a silence."""
        try:
            async with asyncio.timeout(_SILENCE):
                await self._next()
        except TimeoutError:
            return False
        return True

    def _too_large(self, got: str) -> Refusal:
        limit = self.most
        return Refusal(
            "body_too_large",
            f"the body may have at most {limit} bytes, but has {got}",
            expected=f"at most {limit} bytes",
            got=got,
        )
