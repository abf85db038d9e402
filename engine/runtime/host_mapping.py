"""Mapped host memory with a callback before it is unmapped, until which a device may access it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from typing import Any

import numpy as np


class HostMapping(mmap):
    """An `mmap` that calls back before it is unmapped, so that a device can release memory that it has registered."""

    _callback: Callable[[], object] | None = None

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(np.frombuffer(self, np.uint8).ctypes.data)

    def on_unmap(self, call: Callable[[], object]) -> None:
        """Register a callback, which the thread that drops the mapping calls once, before the memory is unmapped."""
        self._callback = call

    def close(self) -> None:
        """Unmap the memory now. Raises BufferError if there are views of it."""
        self._call_back()
        super().close()

    def __del__(self) -> None:
        with suppress(Exception):  # the device may be closed already
            self._call_back()

    def _call_back(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


def mapping_of(array: np.ndarray[Any, Any]) -> HostMapping | None:
    """Return the mapping that an array lies in, through views, slices and `memoryview`, or None."""
    owner: Any = array
    while owner is not None and not isinstance(owner, HostMapping):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner
