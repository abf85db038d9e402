"""Cross-origin calls: which web pages may make them, by the browser's rules."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from engine import printable
from service.errors import Refusal
from service.web.request_ids import HEADER


class Cors(CORSMiddleware):
    """Starlette's CORS, with a problem report for a page that may not call."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("*",),
            expose_headers=(HEADER, "ETag", "Idempotency-Replayed", "Location", "Retry-After"),
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """What the browser is told before it calls. Raises Refusal (forbidden)."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        origin = printable(request_headers.get("origin", ""))
        raise Refusal("forbidden", f"pages of {origin} may not make this call", got=origin)
