"""Routing: which route a request takes, so that nobody else has an opinion on paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Scope

from service.api.calls import calls
from service.core.keys.caller import KeyScope
from service.facades.protocols import HEALTH_PATHS, foreign_call_of

#: what is for everybody: whether the server is well, and what it is
_PUBLIC_PATHS: Final = re.compile(r"/|/health/.*|/docs(?:/.*)?|/openapi(?:-sdk)?(?:-3\.0)?\.json")
_CALL_PATH: Final = re.compile(r"/v1/(?:graphs/[^/]+/)?([a-z_]+)")


def shortened_path(scope: Scope, routes: Sequence[BaseRoute]) -> str:
    """Take the slash off the end of a path, where only the path without it leads somewhere."""
    path: str = scope["path"]
    if (
        path.endswith("/")
        and _first_match(scope, routes) is None
        and _first_match({**scope, "path": path[:-1]}, routes)
    ):
        return path[:-1]
    return path


def route_path(scope: Scope, routes: Sequence[BaseRoute]) -> str | None:
    """Find the path of the route that a request takes, with the names of its parameters; None where there is none.

    Where none takes the method, that of the first one which takes others.
    """
    route = _first_match({**scope, "path": shortened_path(scope, routes)}, routes)
    return route.path if isinstance(route, Route | Mount) else None


def route_of(scope: Scope) -> str:
    """Return the path of the route that the application has found, as its document has it; "" for none."""
    route = scope.get("route")
    return route.path if isinstance(route, Route) else ""


def _first_match(scope: Scope, routes: Sequence[BaseRoute]) -> BaseRoute | None:
    partial = None
    for route in routes:
        match = route.matches(scope)[0]
        if match is Match.FULL:
            return route
        if match is Match.PARTIAL and partial is None:
            partial = route
    return partial


def scope_of(method: str, route: str | None, *, metrics: str = "keys") -> KeyScope | None:
    """Return the scope that a key has to have for a route, which is known by its path; None where no key is needed.

    What leads nowhere takes a key too: without one, nobody learns what there is.
    """
    route = route or ""
    if _PUBLIC_PATHS.fullmatch(route) or route in HEALTH_PATHS:
        return None
    if route == "/metrics":
        return KeyScope.ADMIN if metrics == "keys" else None
    match = _CALL_PATH.fullmatch(route)
    if method == "POST" and ((match is not None and match[1] in calls()) or foreign_call_of(route) is not None):
        return KeyScope.COMPUTE
    return KeyScope.READ if method in ("GET", "HEAD", "OPTIONS") else KeyScope.WRITE
