"""Holds: while there is one, a server deletes nothing, so that a backup finds what it has listed.

A hold is an object whose key says until when it is good, in Unix seconds: one whose backup was killed ends by itself.
A server that runs out of space drops them all, and then the backup fails.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import Final

from service.state.objects import Objects

HOLDS: Final = "holds/"
_HOLD: Final = re.compile(rf"{HOLDS}([0-9]{{1,18}})\.[0-9a-f]+")


def put_hold(objects: Objects, seconds: float) -> str:
    """Ask a server to delete nothing for so many seconds; the key of the hold."""
    key = f"{HOLDS}{int(time.time() + seconds)}.{secrets.token_hex(8)}"
    objects.put(key, [])  # nothing in it: a full disk takes it too
    return key


def is_held(objects: Objects) -> bool:
    """Return whether nothing is to be deleted now. Holds that are over are removed."""
    holds = list(objects.list(HOLDS))
    over = [key for key in holds if _until(key) < time.time()]
    if over:
        objects.delete(over)
    return len(holds) > len(over)


def drop_holds(objects: Objects) -> None:
    """Delete in spite of all holds from now on."""
    objects.delete(list(objects.list(HOLDS)))


def _until(key: str) -> int:
    found = _HOLD.fullmatch(key)
    return int(found[1]) if found else 0
