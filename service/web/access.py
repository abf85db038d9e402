"""Access to routes: decided from a request's method and the route that it takes, and from nothing else."""

from __future__ import annotations

import re
from typing import Final

from service.calls import calls
from service.facades.known import HEALTH_PATHS, foreign_call_of
from service.keys.caller import KeyScope

#: what is for everybody: whether the server is well, and what it is
_OPEN: Final = re.compile(r"/|/health/.*|/docs(?:/.*)?|/openapi(?:-sdk)?(?:-3\.0)?\.json")
_CALL: Final = re.compile(r"/v1/(?:graphs/[^/]+/)?([a-z_]+)")
_METRICS: Final = "/metrics"
_READING: Final = ("GET", "HEAD", "OPTIONS")


def scope_of(method: str, route: str | None, *, metrics: str = "keys") -> KeyScope | None:
    """The scope that a key has to have for a route, which is known by its path; None where no key is needed.

    What leads nowhere takes a key too: without one, nobody learns what there is.
    """
    route = route or ""
    if _OPEN.fullmatch(route) or route in HEALTH_PATHS:
        return None
    if route == _METRICS:
        return KeyScope.ADMIN if metrics == "keys" else None
    found = _CALL.fullmatch(route)
    if method == "POST" and ((found is not None and found[1] in calls()) or foreign_call_of(route) is not None):
        return KeyScope.COMPUTE
    return KeyScope.READ if method in _READING else KeyScope.WRITE
