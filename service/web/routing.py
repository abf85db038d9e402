"""Routing: which route a request matches. Only this module decides about paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Scope

from service.api.calls import calls
from service.core.keys.caller import KeyScope
from service.facades.protocols import HEALTH_PATHS, foreign_call_of

#: paths that are open to everybody: health, and documentation
_PUBLIC_PATHS: Final = re.compile(r"/|/health/.*|/docs(?:/.*)?|/openapi(?:-sdk)?(?:-3\.0)?\.json")
_CALL_PATH: Final = re.compile(r"/v1/(?:graphs/[^/]+/)?([a-z_]+)")


def shortened_path(scope: Scope, routes: Sequence[BaseRoute]) -> str:
    """Remove the trailing slash of a path if only the path without it matches a route."""
    path: str = scope["path"]
    if (
        path.endswith("/")
        and _first_match(scope, routes) is None
        and _first_match({**scope, "path": path[:-1]}, routes)
    ):
        return path[:-1]
    return path


def route_path(scope: Scope, routes: Sequence[BaseRoute]) -> str | None:
    """Return the path of the matching route, with the names of its parameters; None if there is none.

    If no route takes the method, it is the first one that takes other methods.
    """
    route = _first_match({**scope, "path": shortened_path(scope, routes)}, routes)
    return route.path if isinstance(route, Route | Mount) else None


def route_of(scope: Scope) -> str:
    """Return the path of the route that the application has matched, as in the OpenAPI document; "" if none."""
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
    """Return the scope that a key needs for a route, given by its path; None if no key is needed.

    Unknown paths need a key too, so that nobody without one can find out which paths exist.
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
