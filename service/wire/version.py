"""A version of a resident tensor, as requests read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine import HostArray


class Version(NamedTuple):
    """One version of a tensor: its etag, and its elements, which nobody writes."""

    etag: str
    array: HostArray


#: the version that is known under a name, None for none
Find = Callable[[str], Version | None]
