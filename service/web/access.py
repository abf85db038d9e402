"""What a request may be made by: decided from its method and path, the same for both doors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from service.calls import calls
from service.keys.caller import KeyScope
from service.keys.credential import credential_of
from service.keys.gate import Access
from service.settings import Settings

#: what is for everybody: whether the server is well, and what it is
_OPEN: Final = re.compile(r"|/health/.*|/docs(?:/.*)?|/openapi(?:-3\.0)?\.json", re.DOTALL)
_CALL: Final = re.compile(r"/v1/(?:graphs/[^/]+/)?([a-z_]+)")
_METRICS: Final = "/metrics"
_READING: Final = ("GET", "HEAD", "OPTIONS")


def access_of(method: str, path: str, fields: Iterable[tuple[bytes, bytes]], settings: Settings) -> Access:
    """What this head asks for, and with which key."""
    return Access(scope_of(method, path, metrics=settings.metrics), credential_of(fields))


def scope_of(method: str, path: str, *, metrics: str = "keys") -> KeyScope | None:
    """The scope that a key has to have for this; None where no key is needed.

    What is nothing of all this takes a key too: without one, nobody learns what there is.
    """
    path = path.removesuffix("/")  # it leads where the path without it does
    if _OPEN.fullmatch(path):
        return None
    if path == _METRICS:
        return KeyScope.ADMIN if metrics == "keys" else None
    found = _CALL.fullmatch(path)
    if method == "POST" and found is not None and found[1] in calls():
        return KeyScope.COMPUTE
    return KeyScope.READ if method in _READING else KeyScope.WRITE
