"""Whose account the work of this thread goes on, from here on."""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar
from typing import Final

_OWNER: Final[ContextVar[Hashable]] = ContextVar("owner", default=None)


def charge_to(owner: Hashable) -> None:
    """What this thread has kept and compiled from now on is this owner's, until it is told of another one."""
    _OWNER.set(owner)


def current_owner() -> Hashable:
    """Whose it is; None where nobody has said so."""
    return _OWNER.get()
