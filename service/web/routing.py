"""Routing: which route a request takes, so that nobody else has an opinion on paths."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Scope


def shortened_path(scope: Scope, routes: Sequence[BaseRoute]) -> str:
    """The path of the request, without a slash at its end where that leads somewhere and the path with it does not."""
    path: str = scope["path"]
    if path.endswith("/") and _first(scope, routes) is None and _first({**scope, "path": path[:-1]}, routes):
        return path[:-1]
    return path


def route_path(scope: Scope, routes: Sequence[BaseRoute]) -> str | None:
    """The path of the route that the request takes, with the names of what stands in it; None where there is none.

    Where none takes the method, that of the first one which takes others.
    """
    found = _first({**scope, "path": shortened_path(scope, routes)}, routes)
    return found.path if isinstance(found, Route | Mount) else None


def route_of(scope: Scope) -> str:
    """The path of the route that the application has found, as its document has it; "" where it has found none."""
    route = scope.get("route")
    return route.path if isinstance(route, Route) else ""


def _first(scope: Scope, routes: Sequence[BaseRoute]) -> BaseRoute | None:
    partial = None
    for route in routes:
        match = route.matches(scope)[0]
        if match is Match.FULL:
            return route
        if match is Match.PARTIAL and partial is None:
            partial = route
    return partial
