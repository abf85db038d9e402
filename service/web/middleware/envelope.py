"""The outermost layer: a request gets its id and its time of arrival, and a fault of ours still gets a report."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Refusal, fault
from service.web.request_ids import HEADER, new_id, sane
from service.web.response_head import NO_SNIFFING
from service.web.responses import report

_logger = logging.getLogger("gradserve")


class Envelope:
    """Envelope around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Never raises: a server would close the connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = {"request_id": id_of(scope), "arrived": time.monotonic()}
        scope["state"] = {**known, **scope.get("state", {})}  # what holds the connection may have begun it
        outgoing = _Outgoing(scope["state"]["request_id"], send)
        try:
            await self._app(scope, receive, outgoing)
        except Refusal as refusal:
            await _last_word(refusal, scope, outgoing)
        except asyncio.CancelledError:  # the grace after SIGTERM is over
            await _last_word(Refusal("shutting_down", "the server stopped before this was done"), scope, outgoing)
        except Exception:
            request_id = scope["state"]["request_id"]
            _logger.exception("request %s failed", request_id, extra={"request_id": request_id})
            await _last_word(fault(), scope, outgoing)


class _Outgoing:
    """`send`, with the headers that every answer has; remembers whether an answer has begun."""

    def __init__(self, request_id: str, send: Send) -> None:
        self._request_id = request_id
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            headers[HEADER] = self._request_id
            headers.setdefault(*NO_SNIFFING)
        await self._send(message)


def id_of(scope: Scope) -> str:
    """The client's own id for the request where it is sane, else a new one."""
    return sane(Headers(scope=scope).get(HEADER, "")) or new_id()


async def _last_word(refusal: Refusal, scope: Scope, outgoing: _Outgoing) -> None:
    if not outgoing.begun:
        await report(Request(scope), refusal)(scope, _nothing, outgoing)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
