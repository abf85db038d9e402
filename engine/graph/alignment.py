"""Alignment of arrays: they begin at multiples of what is a line of the cache, and the widest vector."""

from __future__ import annotations

from typing import Final

ALIGNMENT: Final = 64


def aligned(nbytes: int) -> int:
    """`nbytes` and what is lost up to the next multiple of ALIGNMENT."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
