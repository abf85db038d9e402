"""What a key has to be good for follows from the route that a request takes: nobody else reads its path."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import Any

import pytest
from starlette.routing import Match, Mount, Route

from service.api.media import JSON
from service.core.keys.caller import KeyScope
from service.core.settings import Settings
from service.web.head import Media, compute_call_of
from service.web.routing import route_path, scope_of
from tests.service.application import create_routes
from tests.service.web.harness import FakePool

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
#: what stands between the parts of paths that are tried, in front of them and behind them
BETWEEN = ("/", "//", "/./", "/x/", "/\n", "\n", "\r", "\u2028", "\x85", " ", ".", "?", "%2F", "\\")


@cache
def routes() -> list[Any]:
    """Of an application."""
    return list(create_routes(Settings(device="cpu", compile="off"), FakePool()).routes)


def placed(path: str) -> str:
    """A path of a route with something in the place of its names."""
    return re.sub(r"\{[^}]*\}", "x", path)


def paths() -> list[str]:
    """Those of the routes, and what is nearly one."""
    known = [placed(route.path) for route in routes()]
    split = [[part for part in path.split("/") if part] for path in known]
    near = {between + between.join(parts) + end for parts in split for between in BETWEEN for end in ("", *BETWEEN)}
    return sorted({*known, *(path + end for path in known for end in BETWEEN), *near})


def taken(method: str, path: str) -> Any:
    """The route that the application's own router would choose for exactly this path."""
    scope = {"type": "http", "method": method, "path": path, "headers": [], "root_path": ""}
    matches = [(route, route.matches(scope)[0]) for route in routes()]
    for wanted in (Match.FULL, Match.PARTIAL):
        for route, match in matches:
            if match is wanted:
                return route
    return None


@pytest.mark.slow
def test_every_path_has_the_scope_of_the_route_that_it_takes() -> None:
    count = 0
    for method, path in itertools.product(METHODS, paths()):
        route = taken(method, path) or (taken(method, path[:-1]) if path.endswith("/") else None)
        expected = route.path if isinstance(route, Route | Mount) else None
        scope = {"type": "http", "method": method, "path": path, "headers": [], "root_path": ""}
        assert route_path(scope, routes()) == expected, (method, path)
        count += 1
    assert count > 1000


def test_what_leads_nowhere_is_open_to_nobody() -> None:
    for method in METHODS:
        assert scope_of(method, None) is (KeyScope.READ if method in ("GET", "HEAD", "OPTIONS") else KeyScope.WRITE)


@pytest.mark.parametrize("path", ["/metrics\n", "/metrics/\n", "/v1/forward\n", "/docs\n"])
def test_a_line_end_changes_nothing_of_the_scope(path: str) -> None:
    """Patterns that end with `$` take one more; no such path gets this far, and if it did, the route would decide."""
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "root_path": ""}
    route = route_path(scope, routes())
    if route is not None:
        assert scope_of("GET", route) is scope_of("GET", path.rstrip("\n/"))


def test_the_fast_door_takes_computing_calls_alone() -> None:
    """It asks for a key that may compute, whatever its path, so that what it takes has to be a route of that scope."""
    orders = 0
    for path in paths():
        if compute_call_of(path, b"", Media(JSON, JSON), 1000) is not None:
            scope = {"type": "http", "method": "POST", "path": path, "headers": [], "root_path": ""}
            assert scope_of("POST", route_path(scope, routes())) is KeyScope.COMPUTE, path
            orders += 1
    assert orders >= 22
