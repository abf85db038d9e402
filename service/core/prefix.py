"""The prefix under which the service is served, where it is a part of another application or behind a proxy.

ASGI has it in `root_path`. Nobody else has an opinion on it: what is decided by a path asks `path_within`, and what
leads to a path of ours begins with `prefix_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

#: what the paths begin with by which servers ask one another: nothing that is for others lies there
BETWEEN_SERVERS: Final = "/cluster/"


def path_within(scope: Mapping[str, Any]) -> str:
    """The path of a request as the service has it, without the prefix; whole, where a proxy has taken that off."""
    path: str = scope["path"]
    root = str(scope.get("root_path", "")).rstrip("/")
    rest = path.removeprefix(root)
    return rest if not rest or rest.startswith("/") else path


def prefix_of(scope: Mapping[str, Any]) -> str:
    """Return what links to the service begin with, "" or as /grad: fit for a header, for JSON and for HTML."""
    root = str(scope.get("root_path", "")).strip("/")
    return f"/{quote(root)}" if root else ""
