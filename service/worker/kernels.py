"""Store of the kernels that a server has compiled."""

from __future__ import annotations

from pathlib import Path

from engine.native.kernel_store import KernelStore
from service.settings import Settings, budget_of


def kernel_store(settings: Settings) -> KernelStore | None:
    """The store of a server's kernels; None where nothing is to be compiled."""
    return None if settings.compile == "off" else KernelStore(kernel_folder(settings), budget_of(settings).kernels)


def kernel_folder(settings: Settings) -> Path | None:
    """The folder of the store; None where there is to be none.

    They have a folder of their own in the one that is set: that one may be a volume that belongs to another user, or
    that everybody may write to, and only what a server makes itself is sure to be its own.
    """
    return settings.cache_dir / "kernels" if settings.cache_dir and settings.compile == "on" else None
