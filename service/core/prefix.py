"""URL prefix of the service if it is mounted in another application or behind a proxy (ASGI's `root_path`).

Code that decides by path uses `path_within`, and links to our paths begin with `url_prefix`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

#: path prefix of requests between servers; nothing below it is for clients
CLUSTER_PREFIX: Final = "/cluster/"


def path_within(scope: Mapping[str, Any]) -> str:
    """Return a request's path without the prefix; unchanged if a proxy has already removed the prefix."""
    path: str = scope["path"]
    root = str(scope.get("root_path", "")).rstrip("/")
    rest = path.removeprefix(root)
    return rest if not rest or rest.startswith("/") else path


def url_prefix(scope: Mapping[str, Any]) -> str:
    """Return the prefix for links to the service: "" or a path like /grad, safe for a header, JSON and HTML."""
    root = str(scope.get("root_path", "")).strip("/")
    return f"/{quote(root)}" if root else ""
