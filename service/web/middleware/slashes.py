"""A slash at the end of a path: it means the path without it, where there is something."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send


class Slashes:
    """Serves `/path/` as `/path`. Not by a redirect: many clients lose their body on the way, or turn it into a GET.

    A path that leads nowhere in either form stays as it was sent, and so it stands in the report.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"].endswith("/") and not self._leads_somewhere(scope):
            shorter = scope["path"][:-1]
            if self._leads_somewhere({**scope, "path": shorter}):
                scope["path"] = shorter
        await self._app(scope, receive, send)

    def _leads_somewhere(self, scope: Scope) -> bool:
        return any(route.matches(scope)[0] is not Match.NONE for route in self._routes)
