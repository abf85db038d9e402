"""Answers and problem reports as HTTP responses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine import printable
from service.errors import Refusal, fault, out_of_memory
from service.state.conditions import Condition
from service.transport.job import Reply
from service.web.sending import SENT_AT_ONCE, slices_to_send
from service.wire.media import JSON, PROBLEM


def answer(content: Mapping[str, Any]) -> Response:
    """200 with `content`."""
    return Response(orjson.dumps(content), media_type=JSON)


def etag_header(etag: str) -> Mapping[str, str]:
    """The header that tells a version by its etag."""
    return {"ETag": f'"{etag}"'}


def not_modified(condition: Condition, name: str, etag: str, what: str = "tensor") -> Response | None:
    """304, where a reader has this version; None where it is to be sent. Raises Refusal: precondition_failed."""
    if not Condition(match=condition.match).holds(etag):
        condition.require(name, etag, what)
    return None if condition.holds(etag) else Response(None, 304, etag_header(etag))


class PartsResponse(Response):
    """A body in parts, each copied as it is sent: the memory that they lie in may serve another when all are."""

    def __init__(self, reply: Reply) -> None:
        """What a worker replied."""
        length = sum(len(part) for part in reply.parts)
        super().__init__(None, reply.status, {"content-length": str(length), **dict(reply.headers)}, reply.media_type)
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send head and body."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if self._reply.claim is not None:
            self._reply.claim.holder = _Sending(asyncio.current_task())
        try:
            await self._send_parts(send)
        finally:
            self._reply.give_back()
        await send({"type": "http.response.body", "body": b""})

    async def _send_parts(self, send: Send) -> None:
        for sent in slices_to_send(self._reply.parts):
            await send({"type": "http.response.body", "body": bytes(sent), "more_body": True})


class _Sending:
    """Holder of an answer that a task sends."""

    revocable = True

    def __init__(self, task: asyncio.Task[Any] | None) -> None:
        self._task = task

    def revoke(self, refusal: Refusal) -> None:
        """Others wait for its memory: the answer ends here."""
        if self._task is not None:
            self._task.cancel()


def from_reply(reply: Reply) -> Response:
    """What a worker replied."""
    if len(reply.parts) > 1 or len(reply.parts[0]) > SENT_AT_ONCE:
        return PartsResponse(reply)
    whole = Response(reply.body, reply.status, dict(reply.headers), reply.media_type)
    reply.give_back()
    return whole


def report(request: Request, refusal: Refusal) -> Response:
    """The problem report."""
    body = refusal.body(request.state.request_id)
    return Response(body, refusal.status, refusal.headers, media_type=PROBLEM)


async def on_error(request: Request, error: Exception) -> Response:
    """The report for whatever a route raised."""
    return report(request, refusal_of(request, error))


def refusal_of(request: Request, error: Exception) -> Refusal:
    """What an exception means to the client."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ClientDisconnect):
        return Refusal("bad_request_framing", "the connection was closed before the body was complete")
    if isinstance(error, HTTPException):
        return _routing(request, error)
    return out_of_memory() if isinstance(error, MemoryError) else fault()


def _routing(request: Request, error: HTTPException) -> Refusal:
    path = printable(request.url.path)
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        method = printable(request.method)
        detail = f"{path} does not take {method}; it takes {allow}"
        return Refusal("method_not_allowed", detail, expected=allow, got=method, allow=allow)
    return Refusal("not_found", f"there is nothing at {path}; {request.state.prefix}/docs lists the calls", got=path)
