"""In front of everything that is decided of a request: does it come by a name, and from a page, that may call?"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import Refusal
from service.prefix import prefix_of
from service.settings import Settings
from service.web.access import scope_of
from service.web.head import check_head
from service.web.origin import OriginPolicy
from service.web.responses import report
from service.web.routing import route_path


class Origins:
    """Middleware that refuses strangers' names and pages, and heads that two readers could take differently.

    Notes the route that the request takes, `route_path`, and the `prefix` of links, for what depends on them.
    """

    def __init__(self, app: ASGIApp, settings: Settings, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._policy = OriginPolicy(settings)
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "http":
            try:
                self._check(scope)
            except Refusal as refusal:
                await report(Request(scope), refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers, method = Headers(scope=scope), scope["method"]
        scope["state"]["prefix"] = prefix_of(scope)
        self._policy.check_address((scope.get("server") or ("",))[0])
        check_head(scope["http_version"], scope["path"], headers)
        route = scope["state"]["route_path"] = route_path(scope, self._routes)
        is_page = method == "GET" and route is not None and scope_of(method, route) is None
        self._policy.check(headers, scope["scheme"], route, visits=is_page)
