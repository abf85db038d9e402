"""The paths of the OpenAPI documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.pages.documents import DOCUMENT_NAMES, represented
from service.state.conditions import of_headers
from service.web.state import state_of
from service.wire.media import GZIP, JSON, takes_gzip

document_router: Final = APIRouter()


def _endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return _answer(name, request)

    return endpoint


def _answer(name: str, request: Request) -> Response:
    """A document, or 304 where the client has it. Raises Refusal: invalid_field."""
    zipped = takes_gzip(",".join(request.headers.getlist("accept-encoding")))
    content, etag = represented(state_of(request).documents[name], request.state.prefix, zipped=zipped)
    headers = {"ETag": f'"{etag}"', "Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
    if not of_headers((), request.headers.getlist("if-none-match")).holds(etag):
        return Response(None, 304, headers)
    coded = {"Content-Encoding": GZIP} if zipped else {}
    return Response(content, headers=headers | coded, media_type=JSON)


for _name in DOCUMENT_NAMES:
    document_router.add_api_route(f"/{_name}", _endpoint(_name), include_in_schema=False)
