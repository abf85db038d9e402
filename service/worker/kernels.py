from __future__ import annotations

from engine.native.kernel_store import KernelStore
from service.settings import Settings, budget_of
from service.worker.permitted import kernel_folder


def kernel_store(settings: Settings) -> KernelStore | None:
    """The store of a server's kernels; None where nothing is to be compiled."""
    return None if settings.compile == "off" else KernelStore(kernel_folder(settings), budget_of(settings).kernels)
