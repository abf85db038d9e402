"""Scopes follow from the route that a request takes; no other code interprets its path."""

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
#: separators that are tried between the parts of paths, before them and after them
SEPARATORS = ("/", "//", "/./", "/x/", "/\n", "\n", "\r", "\u2028", "\x85", " ", ".", "?", "%2F", "\\")


@cache
def routes() -> list[Any]:
    """The routes of an application."""
    return list(create_routes(Settings(device="cpu", compile="off"), FakePool()).routes)


def fill_parameters(path: str) -> str:
    """Replace the parameters of a path by values."""
    return re.sub(r"\{[^}]*\}", "x", path)


def paths() -> list[str]:
    """List the paths of the routes and similar ones."""
    actual = [fill_parameters(route.path) for route in routes()]
    split = [[part for part in path.split("/") if part] for path in actual]
    similar = {
        between + between.join(parts) + end for parts in split for between in SEPARATORS for end in ("", *SEPARATORS)
    }
    return sorted({*actual, *(path + end for path in actual for end in SEPARATORS), *similar})


def route_of(method: str, path: str) -> Any:
    """Find the route that the application's router chooses for exactly this path."""
    scope = {"type": "http", "method": method, "path": path, "headers": [], "root_path": ""}
    matches = [(route, route.matches(scope)[0]) for route in routes()]
    for level in (Match.FULL, Match.PARTIAL):
        for route, match in matches:
            if match is level:
                return route
    return None


@pytest.mark.slow
def test_route_path_agrees_with_the_router() -> None:
    count = 0
    for method, path in itertools.product(METHODS, paths()):
        route = route_of(method, path) or (route_of(method, path[:-1]) if path.endswith("/") else None)
        expected = route.path if isinstance(route, Route | Mount) else None
        scope = {"type": "http", "method": method, "path": path, "headers": [], "root_path": ""}
        assert route_path(scope, routes()) == expected, (method, path)
        count += 1
    assert count > 1000


def test_unknown_path_needs_a_scope() -> None:
    for method in METHODS:
        assert scope_of(method, None) is (KeyScope.READ if method in ("GET", "HEAD", "OPTIONS") else KeyScope.WRITE)


@pytest.mark.parametrize("path", ["/metrics\n", "/metrics/\n", "/v1/forward\n", "/docs\n"])
def test_trailing_line_end_does_not_change_the_scope(path: str) -> None:
    """Patterns that end with `$` also match a line end. Such a path is refused earlier; if not, its route decides."""
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "root_path": ""}
    route = route_path(scope, routes())
    if route is not None:
        assert scope_of("GET", route) is scope_of("GET", path.rstrip("\n/"))


def test_fast_path_accepts_only_computing_calls() -> None:
    """The fast path always requires the compute scope, so it may only accept routes of that scope."""
    orders = 0
    for path in paths():
        if compute_call_of(path, b"", Media(JSON, JSON), 1000) is not None:
            scope = {"type": "http", "method": "POST", "path": path, "headers": [], "root_path": ""}
            assert scope_of("POST", route_path(scope, routes())) is KeyScope.COMPUTE, path
            orders += 1
    assert orders >= 22
