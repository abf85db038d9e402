"""The application as another server than ours runs it, or another application that has it under a prefix."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from service.settings import Settings
from service.web.middleware.leaving import Leaving
from service.web.middleware.links import PrefixedLinks
from service.web.middleware.observing import Observing
from service.web.observer import RequestObserver, unobserved


class Hosted:
    """Application with what a connection of our own does, beside limits on slow clients: who asks, and who leaves."""

    def __init__(self, app: ASGIApp, settings: Settings, observe: RequestObserver = unobserved) -> None:
        self._app = Observing(Leaving(PrefixedLinks(app)), settings, observe)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. What a host has noted of it is the host's: a caller is known by a key of ours alone."""
        if scope["type"] == "http":
            scope = {**scope, "state": {}, "root_path": scope.get("root_path", "").rstrip("/")}
        await self._app(scope, receive, send)
