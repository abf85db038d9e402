"""Mapped memory of the host that says when it goes: a device may read it by itself until then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from typing import Any

import numpy as np


class HostMapping(mmap):
    """A mapping, as `mmap` makes one, that knows who has to let go of it before its memory is the system's again."""

    _leaving: Callable[[], object] | None = None

    @property
    def address(self) -> int:
        """Where it begins."""
        return int(np.frombuffer(self, np.uint8).ctypes.data)

    def before_it_goes(self, call: Callable[[], object]) -> None:
        """Have this called once, by whichever thread drops the mapping, while its memory is still there."""
        self._leaving = call

    def close(self) -> None:
        """Unmap it now. Raises BufferError where somebody still looks at it."""
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
    """The mapping that an array lies in, seen through views, slices and `memoryview`; None where it lies elsewhere."""
    owner: Any = array
    while owner is not None and not isinstance(owner, HostMapping):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner
