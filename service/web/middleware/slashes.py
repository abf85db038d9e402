"""A slash at the end of a path: it means the path without it, where there is something."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from service.web.routing import shortened_path


class Slashes:
    """Middleware for `/path/` as `/path`. Not by a redirect: many clients lose their body then, or turn it into a GET.

    A path that leads nowhere in either form stays as it was sent, and so it stands in the report.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            scope["path"] = shortened_path(scope, self._routes)
        await self._app(scope, receive, send)
