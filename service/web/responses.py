"""Responses: replies and problem reports as HTTP."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Any, Final

import orjson
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from engine import printable
from engine.ir.spellings import join_hint
from service.api.media import JSON, PROBLEM
from service.core.errors import Refusal, internal_error, out_of_memory
from service.core.prefix import path_within
from service.core.spelling import hint
from service.store.changes import Condition
from service.workers.task import Reply

_VERSION: Final = re.compile(r"^/(?:v[0-9]+(?:/|$))?")
#: bytes that are written to the socket at once
SENT_AT_ONCE: Final = 1 << 18


class ResponseWriter:
    """Writer of a large response from the memory that it lies in, slice by slice as the client reads.

    The high-water mark of the transport is 0 meanwhile, so that it calls back when every slice is sent.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        parts: Sequence[bytes | memoryview],
        on_done: Callable[[], None],
        *,
        secure: bool,
    ) -> None:
        self._secure = secure
        self._transport = transport
        self._slices = slices_to_send(parts)
        self._on_done = on_done
        self._paused = False
        self._writing = False

    def pause(self) -> None:
        """Stop: the client reads more slowly than this writes."""
        self._paused = True

    def resume(self) -> None:
        """Continue: what was written is sent."""
        self._paused = False
        if not self._writing:
            self._write()

    def begin(self) -> None:
        """Write what can be written at once."""
        # asyncio's TLS transport copies what is written, and pauses at once if its mark is 0.
        self._transport.set_write_buffer_limits(int(self._secure), 0)
        self._write()

    def _write(self) -> None:
        """Write until the client is behind, or everything is written."""
        self._writing = True
        while not self._paused:
            part = next(self._slices, None)
            if part is None:
                self._transport.set_write_buffer_limits()
                self._on_done()
                return
            self._transport.write(part)
        self._writing = False


def slices_to_send(parts: Sequence[bytes | memoryview]) -> Iterator[memoryview]:
    """Split the parts into slices of `SENT_AT_ONCE` bytes."""
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), SENT_AT_ONCE):
            yield view[start : start + SENT_AT_ONCE]


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Count bytes that the client has not received: in the transport, and in the socket's send queue.

    Linux reports the queue in steps of about a third of its size.
    """
    waiting = transport.get_write_buffer_size()
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return waiting
    with suppress(OSError):  # not every kind of socket, nor every system, supports TIOCOUTQ
        waiting += int.from_bytes(ioctl(descriptor, TIOCOUTQ, bytes(4)), sys.byteorder)
    return waiting


def json_response(content: Mapping[str, Any]) -> Response:
    """Return a response with status 200 and this JSON."""
    return Response(orjson.dumps(content), media_type=JSON)


def etag_header(etag: str) -> Mapping[str, str]:
    """Return the ETag header of a version."""
    return {"ETag": f'"{etag}"'}


def not_modified(condition: Condition, name: str, etag: str, kind: str = "tensor") -> Response | None:
    """Return a 304 response if the reader has this version, None to send it. Raises Refusal: precondition_failed."""
    if not Condition(match=condition.match).holds(etag):
        condition.require(name, etag, kind)
    return None if condition.holds(etag) else Response(None, 304, etag_header(etag))


class PartsResponse(Response):
    """Response in parts, each copied as it is sent: their memory is free when the last one is sent."""

    def __init__(self, reply: Reply) -> None:
        """Make the response of a worker's reply."""
        length = sum(len(part) for part in reply.parts)
        super().__init__(None, reply.status, {"content-length": str(length), **dict(reply.headers)}, reply.media_type)
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send head and body."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if self._reply.claim is not None:
            self._reply.claim.holder = _TaskHolder(asyncio.current_task())
        try:
            for part in slices_to_send(self._reply.parts):
                await send({"type": "http.response.body", "body": bytes(part), "more_body": True})
        finally:
            self._reply.release()
        await send({"type": "http.response.body", "body": b""})


class _TaskHolder:
    """Holder of response memory: a task that sends the response."""

    revocable = True

    def __init__(self, task: asyncio.Task[Any] | None) -> None:
        self._task = task

    def revoke(self, refusal: Refusal) -> None:
        """Abort the response because its memory is needed elsewhere."""
        if self._task is not None:
            self._task.cancel()


def from_reply(reply: Reply) -> Response:
    """Make the response of a worker's reply."""
    if len(reply.parts) > 1 or len(reply.parts[0]) > SENT_AT_ONCE:
        return PartsResponse(reply)
    response = Response(reply.body, reply.status, dict(reply.headers), reply.media_type)
    reply.release()
    return response


def problem_response(request: Request, refusal: Refusal) -> Response:
    """Return the problem report of a refusal."""
    body = refusal.body(request.state.request_id)
    return Response(body, refusal.status, refusal.headers, media_type=PROBLEM)


async def on_error(request: Request, error: Exception) -> Response:
    """Return the problem report of an exception in a route."""
    return problem_response(request, refusal_of(request, error))


def refusal_of(request: Request, error: Exception) -> Refusal:
    """Convert an exception to the refusal that the client gets."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ClientDisconnect):
        return Refusal("bad_request_framing", "the connection was closed before the body was complete")
    if isinstance(error, HTTPException):
        return _routing_refusal(request, error)
    return out_of_memory() if isinstance(error, MemoryError) else internal_error()


def _routing_refusal(request: Request, error: HTTPException) -> Refusal:
    path = printable(request.url.path)
    if error.status_code == 405:
        matching = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        allow = ", ".join(sorted({method for route in matching for method in getattr(route, "methods", ())}))
        method = printable(request.method)
        detail = join_hint(f"{path} does not support {method}; it supports {allow}", _lower_path_hint(request))
        return Refusal("method_not_allowed", detail, expected=allow, got=method, allow=allow)
    advice = _path_hint(request) or f"{request.state.prefix}/docs lists the calls"
    return Refusal("not_found", f"the path {path} does not exist; {advice}", got=path)


def _path_hint(request: Request) -> str:
    """Suggest the path that is most like the request's, leaving out the version; "" if none is close."""
    prefix = request.state.prefix
    paths = {_VERSION.sub("", path.lower()): f"{prefix}{path}" for path, _ in _api_paths(request)}
    name = _VERSION.sub("", path_within(request.scope).lower()).strip("/")
    if not name:
        return ""
    return f"did you mean {paths[name]}?" if name in paths else hint(name, paths, "")


def _lower_path_hint(request: Request) -> str:
    """Suggest a path one level below the request's that takes its method, or PUT for POST; "" if there is none."""
    method = {"POST": "PUT"}.get(request.method, request.method)
    parent = path_within(request.scope)
    paths = (path for path, methods in _api_paths(request) if method in methods and path.rpartition("/")[0] == parent)
    path = next(paths, "")
    return path and f"did you mean {method} {request.state.prefix}{path}?"


def _api_paths(request: Request) -> Iterator[tuple[str, set[str]]]:
    for route in request.app.routes:
        if isinstance(route, APIRoute):
            yield route.path, route.methods or set()
