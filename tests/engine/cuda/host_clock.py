"""A clock for candidates that need no card: host memory, and times set by a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from engine.cuda.autotuning import StreamLaunch

#: guard bytes around each piece of memory, which must not be written
_GUARD = 512
_UNTOUCHED = 0xEE


class HostClock:
    """Times each launch by `seconds_of`; `sizes` logs the requested sizes of memory."""

    def __init__(self, seconds_of: Callable[[], float]) -> None:
        self._seconds_of = seconds_of
        self.sizes: list[tuple[int, ...]] = []
        self.launches = 0

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Yield host memory. Asserts that nothing was written around it."""
        self.sizes.append(tuple(sizes))
        raws = [np.full(nbytes + 3 * _GUARD, _UNTOUCHED, np.uint8) for nbytes in sizes]
        starts = [_GUARD + -raw.ctypes.data % _GUARD for raw in raws]
        for raw, start, nbytes in zip(raws, starts, sizes, strict=True):
            raw[start : start + nbytes] = 0  # valid numbers in every format
        yield [raw.ctypes.data + start for raw, start in zip(raws, starts, strict=True)]
        for raw, start, nbytes in zip(raws, starts, sizes, strict=True):
            assert (raw[:start] == _UNTOUCHED).all()
            assert (raw[start + nbytes :] == _UNTOUCHED).all()

    def seconds(self, launch: StreamLaunch) -> float | None:
        """Time a launch, which no run interrupts."""
        launch(0)
        self.launches += 1
        return self._seconds_of()
