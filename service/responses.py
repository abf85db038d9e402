"""JSON out: answers and problem reports as HTTP responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from service.errors import Refusal, printable
from service.worker import Reply, fault

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"


def answer(content: Mapping[str, Any]) -> Response:
    """200 with `content`."""
    return Response(orjson.dumps(content), media_type=JSON)


def from_reply(reply: Reply) -> Response:
    """What a worker replied."""
    return Response(reply.body, reply.status, media_type=JSON if reply.status == 200 else PROBLEM)


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
    return fault()


def _routing(request: Request, error: HTTPException) -> Refusal:
    path = printable(request.url.path)
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        method = printable(request.method)
        detail = f"{path} does not take {method}; it takes {allow}"
        return Refusal("method_not_allowed", detail, expected=allow, got=method, allow=allow)
    return Refusal("not_found", f"there is nothing at {path}; /docs lists the calls", got=path)
