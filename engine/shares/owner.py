"""The owner that the work of this thread is charged to."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Final

_OWNER: Final[ContextVar[Hashable]] = ContextVar("owner", default=None)


def charge_to(owner: Hashable) -> None:
    """Charge what this thread keeps and compiles from now on to this owner, until it is told of another one."""
    if _OWNER.get() != owner:
        _OWNER.set(owner)


#: whose it is; None where nobody has said so
current_owner: Final[Callable[[], Hashable]] = _OWNER.get
