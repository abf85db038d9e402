"""Mapped memory of the host that tells before it is unmapped: until then, a device may read it by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from typing import Any

import numpy as np


class HostMapping(mmap):
    """An `mmap` that calls back before it is unmapped, so that whoever has registered it can let go of it."""

    _leaving: Callable[[], object] | None = None

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(np.frombuffer(self, np.uint8).ctypes.data)

    def before_it_goes(self, call: Callable[[], object]) -> None:
        """Register a callback. The thread that drops the mapping calls it once, while the memory is still there."""
        self._leaving = call

    def close(self) -> None:
        """Unmap it now. Raises BufferError if a view of it is left."""
        self._leave()
        super().close()

    def __del__(self) -> None:
        with suppress(Exception):  # a device that has gone before
            self._leave()

    def _leave(self) -> None:
        leaving, self._leaving = self._leaving, None
        if leaving is not None:
            leaving()


def mapping_of(array: np.ndarray[Any, Any]) -> HostMapping | None:
    """Find the mapping that an array lies in, through views, slices and `memoryview`; None if it lies elsewhere."""
    owner: Any = array
    while owner is not None and not isinstance(owner, HostMapping):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner
