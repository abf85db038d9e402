"""Where the kernels are kept that a server has compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.native.kernel_store import MOST_BYTES_IN_MEMORY, KernelStore
from service.settings import Settings

#: kernels may take one part in so many of what is there for plans, beside it, in memory
_KERNEL_SHARE: Final = 8


def kernel_store(settings: Settings) -> KernelStore | None:
    """The store of a server's kernels; None where nothing is to be compiled."""
    return None if settings.compile == "off" else KernelStore(kernel_folder(settings), kernel_bytes(settings))


def kernel_bytes(settings: Settings) -> int:
    """What the store keeps in memory, at most."""
    return 0 if settings.compile == "off" else min(MOST_BYTES_IN_MEMORY, settings.plan_cache_bytes // _KERNEL_SHARE)


def kernel_folder(settings: Settings) -> Path | None:
    """The folder of the store; None where there is to be none.

    They have a folder of their own in the one that is set: that one may be a volume that belongs to another user, or
    that everybody may write to, and only what a server makes itself is sure to be its own.
    """
    return settings.cache_dir / "kernels" if settings.cache_dir and settings.compile == "on" else None
