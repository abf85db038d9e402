"""Alignment of arrays: each begins at a multiple of a cache line, which is also the widest vector."""

from __future__ import annotations

from typing import Final

ALIGNMENT: Final = 64


def aligned(nbytes: int) -> int:
    """`nbytes` and what is lost up to the next multiple of ALIGNMENT."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
