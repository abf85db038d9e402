"""Prefix under which the service is served, as a part of another application or behind a proxy (ASGI's `root_path`).

Decisions by a path ask `path_within`, and links to paths of ours begin with `prefix_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

#: prefix of the paths by which servers ask one another; nothing for clients lies there
BETWEEN_SERVERS: Final = "/cluster/"


def path_within(scope: Mapping[str, Any]) -> str:
    """Return the path of a request without the prefix; unchanged if a proxy has removed the prefix."""
    path: str = scope["path"]
    root = str(scope.get("root_path", "")).rstrip("/")
    rest = path.removeprefix(root)
    return rest if not rest or rest.startswith("/") else path


def prefix_of(scope: Mapping[str, Any]) -> str:
    """Return the prefix of links to the service, "" or like /grad: fit for a header, for JSON and for HTML."""
    root = str(scope.get("root_path", "")).strip("/")
    return f"/{quote(root)}" if root else ""
