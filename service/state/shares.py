"""Share that one namespace may fill of what a server keeps."""

from __future__ import annotations

from collections.abc import Callable

from service.settings import Settings
from service.state.table import Quota, Share

#: what the keys of a namespace state for a limit of that name; None where they state nothing
StatedLimit = Callable[[str, str], int | None]
#: the namespace of the server itself, which is all of it where no keys are asked for
_OWN = ""


def total_quota(settings: Settings, things: str) -> Quota:
    """The quota for all `things` together: graph, tensor, model or answer."""
    return Quota(getattr(settings, f"max_{things}s"), getattr(settings, f"max_{things}_bytes"))


def share_of_each(settings: Settings, things: str, stated: StatedLimit | None) -> Share | None:
    """The quota of a namespace: what its keys state, or else its percentage of all; None where no keys are asked for.

    The server's own namespace may fill all, unless a key of it states less.
    """
    if stated is None:
        return None

    def most(namespace: str, limit: str) -> int:
        own = stated(namespace, limit)
        of_all: int = getattr(settings, limit)
        if own is not None:
            return own
        return of_all if namespace == _OWN else of_all * settings.namespace_share // 100

    return lambda namespace: Quota(most(namespace, f"max_{things}s"), most(namespace, f"max_{things}_bytes"))
